package tmux

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"
)

// deadline of one tmux command. A healthy server answers in milliseconds; one
// that is stopped, or of a version that the client cannot speak to, never does.
const deadline = 5 * time.Second

// clients are the tmux commands that run at a time. The server takes them one by
// one: two hundred at once (a recipe with as many tasks) would each wait for all
// others, and the last ones past their deadline.
var clients = make(chan struct{}, 8)

// run runs one tmux command (or a sequence, joined by ";" elements) and returns
// what it printed. A failure is an *Error; what was printed before it is
// returned as well, since the earlier commands of a sequence have taken effect.
func (s *Server) run(ctx context.Context, dir string, args ...string) (string, error) {
	if err := s.mayRun(args); err != nil {
		return "", err
	}
	select {
	case clients <- struct{}{}:
		defer func() { <-clients }()
	case <-ctx.Done():
		return "", &Error{Args: args, Err: ctx.Err()}
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	// -u: what is printed is UTF-8 whatever the locale; without it tabs and
	// non-ASCII text come out as "_".
	cmd := exec.CommandContext(ctx, s.Bin, append(s.global(), args...)...)
	cmd.Env = environment()
	cmd.Dir = dir
	cmd.WaitDelay = deadline // the server holds the pipes too, and lets go of them in its turn; nobody may hold us for ever
	ownGroup(cmd)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if err == nil && stderr.Len() > 0 && out.Len() == 0 {
		// tmux up to 3.7 answers 0 when it could not reach the socket's folder.
		err = classify(stderr.String())
	}
	if err != nil {
		return out.String(), &Error{Args: args, Stderr: stderr.String(), Err: cause(ctx, err, stderr.String())}
	}
	return out.String(), nil
}

// global are the flags of every command.
func (s *Server) global() []string { return []string{"-u", "-S", s.Socket, "-f", os.DevNull} }

// environment is what the tmux program gets, and so, with the first client, what
// the server keeps for life: nothing of the caller's but where programs and the
// home folder are. A GPU choice or a token of the first caller would otherwise
// stand in every later pane. TMUX is left out, so that hob works inside a pane
// of any tmux, and the locale is fixed, so that tmux speaks English and UTF-8.
func environment() []string {
	env := []string{"LC_ALL=C.UTF-8", "LANG=C.UTF-8"}
	for _, name := range []string{"PATH", "HOME", "SystemRoot"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// cause finds the error to match on: the context's, else what tmux's words mean,
// else err itself.
func cause(ctx context.Context, err error, stderr string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return silence{}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c := classify(stderr); c != nil {
		return c
	}
	return err
}

// silence is ErrSilent, for as long as was waited.
type silence struct{}

func (silence) Error() string { return ErrSilent.Error() + ": nothing within " + deadline.String() }

func (silence) Is(err error) bool { return err == ErrSilent || err == context.DeadlineExceeded }

// phrases are tmux's words and what they mean, first match wins. "Permission
// denied" is not among them on purpose: a server that we may not reach is not
// one that is not there.
var phrases = []struct {
	words string
	means error
}{
	{"no server running on", ErrNoServer},
	{"(No such file or directory)", ErrNoServer},
	{"(Connection refused)", ErrNoServer},
	{"can't find pane", ErrNoTarget},
	{"can't find window", ErrNoTarget},
	{"can't find session", ErrNoTarget},
	{"session not found", ErrNoTarget},
	{"no current target", ErrNoTarget},
	{"duplicate session", ErrExists},
	{"create window failed: index", ErrIndex},
	{"protocol version mismatch", ErrMismatch},
	{"server version is too old for client", ErrMismatch},
	{"server exited", ErrLost},
	{"lost server", ErrLost},
}

// classify turns tmux's words into one of the package's errors, or nil.
func classify(stderr string) error {
	for _, p := range phrases {
		if strings.Contains(stderr, p.words) {
			return p.means
		}
	}
	if said := strings.TrimSpace(stderr); strings.HasPrefix(said, "error connecting to") {
		return errors.New("the socket cannot be reached")
	}
	return nil
}
