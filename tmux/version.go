package tmux

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// MinVersion is the oldest tmux that hob works with: new-session -e, -N, -D and
// option inheritance as hob needs them begin there.
const MinVersion = "3.2"

// version is what `tmux -V` printed.
type version struct {
	text         string
	major, minor int
	known        bool // a number could be read
	openbsd      bool // numbered like the system that it is part of
	latest       bool // built from the development branch without a number
}

// programVersion asks the program itself; it needs no server.
func programVersion(ctx context.Context, bin string) (version, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-V")
	cmd.Env = environment()
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return version{}, &Error{Args: []string{"-V"}, Stderr: stderr.String(), Err: cause(ctx, err, "")}
	}
	return parseVersion(out.String()), nil
}

// ProgramVersion is what the tmux program on PATH says of itself. The error says
// why hob cannot work with it.
func ProgramVersion(ctx context.Context) (string, error) {
	bin, err := exec.LookPath("tmux")
	if err != nil {
		return "", fmt.Errorf("%w: install tmux %s or newer (%w)", ErrNoTmux, MinVersion, err)
	}
	v, err := programVersion(ctx, bin)
	if err != nil {
		return "", err
	}
	return v.text, v.check(bin)
}

// parseVersion reads "tmux 3.3a", "tmux next-3.8", "tmux master" and
// "tmux openbsd-7.4".
func parseVersion(out string) version {
	text := strings.TrimSpace(out)
	v := version{text: text}
	word := strings.TrimPrefix(text, "tmux ")
	if word == "master" {
		v.known, v.latest = true, true
		return v
	}
	word = strings.TrimPrefix(word, "next-")
	word, v.openbsd = strings.CutPrefix(word, "openbsd-")
	major, rest, _ := strings.Cut(word, ".")
	minor := strings.TrimRight(rest, "abcdefghijklmnopqrstuvwxyz-")
	minor, _, _ = strings.Cut(minor, "-")
	var errMajor, errMinor error
	v.major, errMajor = strconv.Atoi(major)
	v.minor, errMinor = strconv.Atoi(minor)
	v.known = errMajor == nil && errMinor == nil
	return v
}

// check refuses what is too old, and what does not say how old it is.
func (v version) check(bin string) error {
	switch {
	case !v.known:
		return fmt.Errorf("%w: %s -V says %q, which is no version; hob needs tmux %s or newer", ErrTooOld, bin, v.text, MinVersion)
	case v.latest:
		return nil
	case v.openbsd && !v.atLeast(6, 9): // the release that came with tmux 3.2
		return fmt.Errorf("%w: %s is %q; hob needs the tmux of OpenBSD 6.9 or newer", ErrTooOld, bin, v.text)
	case !v.openbsd && !v.atLeast(3, 2):
		return fmt.Errorf("%w: %s is %q; hob needs tmux %s or newer", ErrTooOld, bin, v.text, MinVersion)
	}
	return nil
}

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}
