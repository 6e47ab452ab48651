package tasks

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// Size of the command's terminal when the pane has none, as tmux makes them.
const (
	defaultRows    = 50
	defaultColumns = 200
)

// drainQuiet is how long the end of the output may keep quiet. It matters only
// where something that is spared, or somebody else, still has the pty open; else
// the pty says when it is at its end.
const drainQuiet = 300 * time.Millisecond

// terminal is the command's own pty, copied to the log and the pane, and the
// pane's input copied to it, as script(1) does. So the log does not depend on
// tmux, and is complete.
type terminal struct {
	master, slave *os.File // the slave stays open until the tree is empty: else a program that closes its output would end the reading
	log           *taskLog
	pane          *pane
	before        *term.State   // of the pane; nil when it is no terminal
	arrived       atomic.Int64  // bytes that were read and written to the log
	ended         chan struct{} // closed at the end of the output
}

// openTerminal makes the pty and starts the copying. hangup is posted when the
// pane's input ends.
func openTerminal(log *taskLog, post func(func()), hangup func()) (*terminal, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open a pty for the command: %w", err)
	}
	t := &terminal{master: master, slave: slave, log: log, ended: make(chan struct{})}
	t.resize()
	t.raw()
	t.pane = newPane(os.Stdout)
	go t.copyOut()
	go func() {
		t.copyIn()
		post(hangup)
	}()
	return t, nil
}

// raw gives the command's terminal the settings of the pane, and lets the pane
// pass everything on: Ctrl-C is a byte there, and a signal in the command's.
func (t *terminal) raw() {
	in := int(os.Stdin.Fd())
	state, err := term.GetState(in)
	if err != nil {
		return // not a terminal
	}
	_ = term.Restore(int(t.slave.Fd()), state)
	if _, err := term.MakeRaw(in); err == nil {
		t.before = state
	}
}

// resize gives the command's terminal the size of the pane.
func (t *terminal) resize() {
	if err := pty.InheritSize(os.Stdin, t.master); err != nil {
		if rows, _, err := pty.Getsize(t.master); err != nil || rows == 0 {
			_ = pty.Setsize(t.master, &pty.Winsize{Rows: defaultRows, Cols: defaultColumns})
		}
	}
}

// copyOut ends with EIO, when no process has the slave open any more, or EOF.
func (t *terminal) copyOut() {
	defer close(t.ended)
	buf := make([]byte, 32<<10)
	for {
		n, err := t.master.Read(buf)
		t.show(buf[:n])
		if err != nil {
			return
		}
	}
}

// show writes to the log first: what a person has seen can be looked up.
func (t *terminal) show(b []byte) {
	_, _ = t.log.Write(b)
	t.arrived.Add(int64(len(b)))
	_, _ = t.pane.Write(b)
}

// say is a message of the keeper's own, in the log and in the pane.
func (t *terminal) say(format string, args ...any) {
	t.show(fmt.Appendf(nil, "hob: "+format+"\r\n", args...))
}

// tell is a message of the keeper's own to whoever looks at the pane. The log
// stays the command's.
func (t *terminal) tell(format string, args ...any) {
	_, _ = t.pane.Write(fmt.Appendf(nil, "\r\nhob: "+format+"\r\n", args...))
}

// copyIn ends when the pane's terminal is gone (EOF, EIO).
func (t *terminal) copyIn() {
	buf := make([]byte, 4<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if n > 0 {
			_, _ = t.master.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// drain reads what is left in the pty.
func (t *terminal) drain() {
	_ = t.slave.Close()
	for {
		before := t.arrived.Load()
		select {
		case <-t.ended:
			return
		case <-time.After(drainQuiet):
			if t.arrived.Load() == before {
				return
			}
		}
	}
}

// close shows what the pane still has to show, and gives it its settings back.
func (t *terminal) close() {
	t.pane.close()
	t.log.close()
	if t.before != nil {
		_ = term.Restore(int(os.Stdin.Fd()), t.before)
	}
}
