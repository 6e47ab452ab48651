package tmux

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// spawnBytes is how much of a sequence is given to one tmux: the program sends it
// to the server as one message of at most 16 KiB.
const spawnBytes = 12 << 10

// SpawnAll makes panes, as many by one tmux invocation as it takes: each is a
// program that starts, connects and ends. It stops at the first that cannot be
// made; panes are those before it, in the order that was asked for, and err is
// about the next one. An error that is a context error leaves open how many were
// made beyond these.
func (s *Server) SpawnAll(ctx context.Context, all []Spawn) (panes []Pane, err error) {
	for len(panes) < len(all) && err == nil {
		var some []Pane
		some, err = s.spawnSome(ctx, all[len(panes):])
		panes = append(panes, some...)
	}
	return panes, err
}

// spawnSome makes the first of the panes, and those after it that go into the same
// sequence. It makes one at least, or errors.
func (s *Server) spawnSome(ctx context.Context, all []Spawn) ([]Pane, error) {
	if err := all[0].check(); err != nil {
		return nil, err
	}
	dir := cmp.Or(all[0].Dir, "/")
	args, n := sequence(all)
	if all[0].Join {
		args = append([]string{"-N"}, args...)
	}
	out, err := s.run(ctx, dir, args...)
	panes, perr := parseSpawns(out, all[:n])
	switch {
	case len(panes) == n:
		return panes, nil // they exist; what can have failed after the last is its layout
	case err != nil:
		return panes, err
	}
	return panes, &Error{Args: args, Err: fmt.Errorf("no pane was made: %w", perr)}
}

// sequence is the commands that make the first n of the panes: those that the same
// client can make, from the same folder, in one message. A layout that failed would
// end the sequence as if the next pane had, so a split is the last one.
func sequence(all []Spawn) (args []string, n int) {
	args = slices.Clone(setup)
	size := bytesOf(args)
	for i, r := range all {
		one := r.command()
		if i > 0 {
			if all[i-1].Split || r.Dir != all[0].Dir || r.Join != all[0].Join || size+bytesOf(one) > spawnBytes || r.check() != nil {
				break
			}
			args = append(args, ";")
		}
		args = append(args, one...)
		size += bytesOf(one)
		n++
	}
	return args, n
}

func bytesOf(args []string) int {
	total := 0
	for _, a := range args {
		total += len(a) + 1
	}
	return total
}

// parseSpawns reads what a sequence printed: a line for each pane that was made.
func parseSpawns(out string, all []Spawn) (panes []Pane, err error) {
	for _, r := range all {
		line, rest, _ := strings.Cut(out, "\n")
		out = rest
		pane, err := parseSpawned(line)
		if err != nil {
			return panes, err
		}
		pane.SessionName, pane.WindowName = r.names()
		panes = append(panes, pane)
	}
	return panes, nil
}
