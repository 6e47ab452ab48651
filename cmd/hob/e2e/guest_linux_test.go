package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hob/identity"
)

// guest is a tmux server that somebody else has started, with a shell in its
// first pane. hob only reads it.
type guest struct {
	k      *kitchen
	socket string
	pins   []identity.Handle
}

// guest starts one, and ends it at the end of the test, before the kitchen looks
// for what is left.
func (k *kitchen) guest() *guest {
	k.t.Helper()
	p := &guest{k: k, socket: k.path("u")}
	k.check(os.WriteFile(k.path("rc"), []byte("PS1='$ '\n"), 0o600))
	p.start()
	k.t.Cleanup(p.end)
	return p
}

func (p *guest) start() {
	p.k.t.Helper()
	p.tmux("new-session", "-d", "-s", "Mine", "-n", "w", "-x", "120", "-y", "30", "--", "bash", "--rcfile", p.k.path("rc"), "-i")
}

func (p *guest) end() {
	_ = exec.Command("tmux", "-S", p.socket, "kill-server").Run() // the test may have killed it
	for _, pin := range p.pins {
		if pin.Verify().Verdict == identity.Owned {
			_ = pin.Signal(syscall.SIGKILL)
		}
		pin.Close()
	}
	p.k.until("the person's processes to end", func() bool {
		return !slices.ContainsFunc(p.k.marked(), func(r identity.Process) bool { return !p.k.strange[r.PID] })
	})
}

// tmux is the person's own use of it.
func (p *guest) tmux(args ...string) string {
	p.k.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = append(slices.Clone(p.k.env), "SHELL=/bin/sh")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.k.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// types types a line into the first pane.
func (p *guest) types(line string) { p.tmux("send-keys", "-t", "%0", "-l", line+"\n") }

// pane makes another pane for a command, and is its id.
func (p *guest) pane(argv ...string) string {
	return p.tmux(append([]string{"new-window", "-d", "-n", "w", "-P", "-F", "#{pane_id}", "--"}, argv...)...)
}

// all is what there is in the server that hob could have changed.
func (p *guest) all() string {
	p.k.t.Helper()
	var b strings.Builder
	for _, args := range [][]string{
		{"show-options", "-s"}, {"show-options", "-g"}, {"show-options", "-gw"}, {"show-hooks", "-g"}, {"show-environment", "-g"}, {"list-buffers"},
		{"list-sessions", "-F", "#{session_id} #{session_name} #{session_windows} #{session_attached} #{session_created}"},
		{"list-panes", "-a", "-F", "#{session_id} #{window_id} #{window_index} #{window_name} #{pane_id} #{pane_pid} #{pane_dead} #{pane_active} #{pane_in_mode} #{pane_width} #{pane_title}"},
		{"list-clients"}, {"display-message", "-p", "#{pid} #{start_time}"},
	} {
		fmt.Fprintf(&b, "%v\n%s\n", args, p.tmux(args...))
	}
	return b.String()
}

func (p *guest) unchanged(before string) {
	p.k.t.Helper()
	if now := p.all(); now != before {
		p.k.t.Errorf("the person's tmux server was changed; before:\n%s\nnow:\n%s", before, now)
	}
}

// byHand is a kitchen where a person has started a stew in the foreground of a
// shell, and a server behind it.
func byHand(t *testing.T, bin string) (*kitchen, *guest) {
	t.Helper()
	k := open(t)
	k.bin = bin
	k.testdata("stew.sh")
	k.check(unix.Mkfifo(k.d()+"/never", 0o600))
	p := k.guest()
	p.types("sh -c '" + k.note("behind") + "; exec sleep 614' &")
	p.keep("behind")
	p.types("HOB_RUN_ID=x sh " + k.path("stew.sh") + " " + k.d())
	for _, name := range stew {
		p.keep(name)
	}
	k.stranger("with the same command line", exec.Command("sh", k.path("stew.sh"), k.d()))
	return k, p
}

// note has a shell write its pid to the file of that name, whole.
func (k *kitchen) note(name string) string {
	return fmt.Sprintf("echo $$ >%[1]s/.%[2]s && mv %[1]s/.%[2]s %[1]s/%[2]s", k.d(), name)
}

// keep pins a process of the person's, for the end of the test.
func (p *guest) keep(name string) {
	pin := p.k.pin(name)
	delete(p.k.pins, name)
	p.pins = append(p.pins, pin)
	p.k.truth[name] = pin
}
