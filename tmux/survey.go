package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Seen is a pane with what a person sees of it.
type Seen struct {
	Pane
	WindowIndex, PaneIndex int
	Focus                  bool   // it has its window's cursor
	Front                  bool   // its window is the one that the session shows
	Layout                 string // tmux's own text for the window's cells
	Title                  string // whatever a program or a person has set
	Label                  string // hob's own name for it; "" where hob gave none
	Garbled                bool   // names, title and label could not be told apart
}

// surveyed is a row of Survey: fields without free text, the lengths in bytes of
// four texts that may hold anything, line ends and separators too, and these.
const surveyed = spawned + "|#{pane_dead}|#{window_index}|#{pane_index}|#{pane_active}|#{window_active}|#{window_layout}" +
	"|#{n:session_name}|#{n:window_name}|#{n:pane_title}|#{n:@hob}|#{session_name}|#{window_name}|#{pane_title}|#{@hob}|"

// Survey lists every pane of the server with what a person sees of it, in the
// order of sessions, windows and panes. ErrNoServer when none runs.
func (s *Server) Survey(ctx context.Context) ([]Seen, error) {
	out, err := s.run(ctx, "/", "display-message", "-p", "#{pid}", ";", "list-panes", "-a", "-F", surveyed)
	answer, rows, _ := strings.Cut(out, "\n")
	if err != nil {
		if _, perr := parseID(answer); perr == nil && errors.Is(err, ErrNoTarget) {
			return nil, nil
		}
		return nil, err
	}
	seen, err := parseSurvey(rows)
	if err != nil {
		return nil, fmt.Errorf("look at the panes of %s: %w", s.Socket, err)
	}
	return seen, nil
}

// parseSurvey reads the rows of Survey. A row ends where its lengths say, not at
// the first line end.
func parseSurvey(out string) ([]Seen, error) {
	var all []Seen
	for out != "" {
		var p Seen
		var err error
		if p, out, err = parseSeen(out); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// fixed is how many fields come before the texts.
const fixed = 16

func parseSeen(out string) (p Seen, rest string, err error) {
	f := strings.SplitN(out, "|", fixed+1)
	if len(f) != fixed+1 {
		return p, "", fmt.Errorf("row %.200q: %d fields instead of %d", out, len(f), fixed+1)
	}
	if p.Pane, err = parseIDs(f[:6]); err != nil {
		return p, "", fmt.Errorf("row %.200q: %w", out, err)
	}
	p.Dead, p.Focus, p.Front, p.Layout = f[6] == "1", f[9] == "1", f[10] == "1", f[11]
	p.WindowIndex, _ = strconv.Atoi(f[7]) // for the order alone, which the rows have too
	p.PaneIndex, _ = strconv.Atoi(f[8])
	texts, rest, ok := parseTexts(f[12:16], f[16])
	if !ok {
		line, after, _ := strings.Cut(f[16], "\n")
		p.Garbled = true
		p.SessionName, p.WindowName = splitNames(f[12], strings.TrimSuffix(line, "|"))
		return p, after, nil
	}
	p.SessionName, p.WindowName, p.Title, p.Label = texts[0], texts[1], texts[2], texts[3]
	return p, rest, nil
}

// parseTexts takes texts of known lengths, each with a "|" behind it, and the end
// of the row.
func parseTexts(lengths []string, s string) (texts []string, rest string, ok bool) {
	for _, length := range lengths {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n >= len(s) || s[n] != '|' {
			return nil, "", false
		}
		texts = append(texts, s[:n])
		s = s[n+1:]
	}
	rest, ok = strings.CutPrefix(s, "\n")
	return texts, rest, ok
}
