//go:build unix && !linux && !darwin && !freebsd && !openbsd

package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// psColumns is what is asked of ps(1) on a system that hob has no better reader
// for. Start times are not among them: ps shows whole seconds of a wall clock,
// in the reader's language, which identifies nothing.
const psColumns = "pid=,ppid=,pgid=,uid=,state=,args="

// local is the last resort: a system that hob knows only through ps(1). It
// lists processes. It proves nothing of them, so nothing is ever Owned here,
// and nothing is signalled.
type local struct {
	way   bareWay
	facts Facts
}

// Local is the host that the caller runs on, as ps(1) shows it.
func Local() (Host, error) {
	f := Facts{OS: runtime.GOOS, InitPIDNS: true, UID: os.Geteuid()}
	f.Host, _ = os.Hostname()
	f.Incomplete = []string{"the process table comes from ps, which shows no start times: no process can be verified"}
	return &local{facts: f, way: bareWay{sys: psTable{}, facts: f, row: "8"}}, nil
}

// Facts describes the host.
func (l *local) Facts() Facts { return l.facts }

// Now is the wall clock.
func (l *local) Now() time.Time { return time.Now() }

// Verify tells only who is gone.
func (l *local) Verify(ref Ref) (Handle, Finding) { return l.way.verify(ref) }

// Open always errors.
func (l *local) Open(pid int) (Handle, error) { return l.way.open(pid, l.Now()) }

// Children cannot be told without a listing.
func (l *local) Children(pid int) ([]int, error) {
	return nil, fmt.Errorf("children of pid %d: %w: only a listing tells", pid, ErrUnsupported)
}

// Snapshot runs ps once.
func (l *local) Snapshot(ctx context.Context, want Field) (*Table, error) {
	rows, err := runPS(ctx)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w: %w", ErrUnverifiable, err)
	}
	for i := range rows {
		rows[i].Missing = want &^ (WantArgs | WantUser)
	}
	return &Table{Procs: rows, SawSelf: true}, nil
}

// Wait cannot be: there are no handles.
func (l *local) Wait(context.Context, []Handle, time.Time) error {
	return fmt.Errorf("wait for processes: %w", ErrUnsupported)
}

// runPS fails unless the listing holds ourselves: a ps that shows nothing is no
// proof that nothing is there.
func runPS(ctx context.Context) ([]Process, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ps", "-A", "-o", psColumns)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	rows, err := parsePS(text)
	if err != nil {
		return nil, err
	}
	for _, p := range rows {
		if p.PID == os.Getpid() {
			return rows, nil
		}
	}
	return nil, errors.New("the answer of ps does not hold our own pid")
}

type psTable struct{}

func (psTable) leaderRow(pid int, _ Field) (Process, error) {
	rows, err := runPS(context.Background())
	if err != nil {
		return Process{}, fmt.Errorf("%w: %w", ErrUnverifiable, err)
	}
	for _, p := range rows {
		if p.PID == pid {
			return p, nil
		}
	}
	return Process{}, ErrGone
}

func (psTable) kill(int, syscall.Signal) error { return ErrUnsupported }
