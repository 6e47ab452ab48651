package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"

	"hob/identity"
	"hob/identity/flock"
	"hob/tmux"
)

// The grades of a Check.
const (
	Good    = "ok"
	Warning = "warning" // hob works, and does less
	Bad     = "bad"     // hob does not work
	Unknown = "unknown" // could not be found out
)

// Check is one thing that `hob doctor` looked at.
type Check struct {
	Name  string `json:"name"`
	Grade string `json:"grade"`
	Text  string `json:"text"`
	Tip   string `json:"tip,omitempty"`
}

// Doctor says what this host lets hob see and do.
func (m *Manager) Doctor(ctx context.Context) []Check {
	f := m.Host.Facts()
	checks := []Check{m.checkTmux(ctx), m.checkSocket(), m.checkHome(), m.checkStrays(ctx)}
	checks = append(checks, factChecks(f)...)
	checks = append(checks, checkCgroup(m.Host.Cgroups()), m.checkTerminals(ctx), checkLogind(m.getenv("USER")))
	return append(checks, hostChecks(ctx)...)
}

func (m *Manager) checkTmux(ctx context.Context) Check {
	version, err := tmux.ProgramVersion(ctx)
	if err != nil {
		return Check{"tmux", Bad, err.Error(), "install tmux " + tmux.MinVersion + " or newer"}
	}
	return Check{"tmux", Good, version, ""}
}

func (m *Manager) checkSocket() Check {
	socket, err := m.socket()
	if err == nil {
		_, err = tmux.Open(socket)
	}
	if err != nil && !errors.Is(err, tmux.ErrNoTmux) {
		return Check{"socket", Bad, err.Error(), "set TMPDIR or XDG_RUNTIME_DIR to a short folder of your own"}
	}
	return Check{"socket", Good, socket, ""}
}

// checkHome makes nothing that stays: who only looks has no state folder yet.
func (m *Manager) checkHome() Check {
	const name = "state folder"
	home, text := m.Store.Home, m.Store.Home
	_, err := ViewStore(home)
	if _, statErr := os.Stat(home); err == nil && errors.Is(statErr, fs.ErrNotExist) {
		err, text = canBeMade(home), home+" (not there yet)"
	} else if err == nil {
		err = probeHome(home, true)
	}
	if err != nil {
		return Check{name, Bad, err.Error(), "name another one with --home"}
	}
	return Check{name, Good, text, ""}
}

// canBeMade asks the nearest folder above that is there.
func canBeMade(dir string) error {
	for {
		above := filepath.Dir(dir)
		if _, err := os.Stat(above); !errors.Is(err, fs.ErrNotExist) || above == dir {
			if err := flock.Writable(above); err != nil {
				return fmt.Errorf("state folder %s cannot be made in %s: %w", dir, above, err)
			}
			return nil
		}
		dir = above
	}
}

// factChecks judges what can be seen of processes.
func factChecks(f identity.Facts) []Check {
	checks := []Check{
		{"system", Good, f.OS + ", host " + f.Host, ""},
		judge("boot id", f.Boot != "", Bad, "records can be told from those of another boot",
			"unreadable: no recorded process can be verified, so none is ever signalled"),
		judge("process pins", f.Pidfd, Warning, "a process is pinned before it is signalled (pidfd)",
			"none: identity is checked right before each signal, and a small window remains"),
		judge("process ids", f.Pidfs, Warning, "each process has a number of its own for this boot (pidfs, Linux 6.9)",
			"identity is pid and start time, which can repeat within a clock tick"),
		judge("process table", f.Procfs || f.OS != "linux", Bad, "it can be read",
			"no procfs on /proc: nothing can be looked at"),
		judge("other users", !f.HidePID, Warning, "their processes can be seen",
			"hidden (hidepid): look-alikes and holders of ports that belong to others are not found"),
		judge("subreaper", f.Subreaper, Warning, "what leaves its parent falls to the task's keeper, so that nothing gets away",
			"none on this system: a child that is orphaned before a capture is only reported"),
	}
	for _, what := range f.Incomplete {
		checks = append(checks, Check{"could not read", Unknown, what, ""})
	}
	return checks
}

func judge(name string, good bool, otherwise, yes, no string) Check {
	if good {
		return Check{name, Good, yes, ""}
	}
	return Check{name, otherwise, no, ""}
}

// checkTerminals says who looks at hob's panes.
func (m *Manager) checkTerminals(ctx context.Context) Check {
	const name = "terminals"
	socket, err := m.socket()
	if err != nil {
		return Check{name, Unknown, err.Error(), ""}
	}
	server, err := tmux.Open(socket)
	if err != nil {
		return Check{name, Unknown, err.Error(), ""}
	}
	clients, err := server.Clients(ctx)
	switch {
	case errors.Is(err, tmux.ErrNoServer):
		return Check{name, Good, "none attached: hob's tmux server does not run", ""}
	case err != nil:
		err = m.silent(err, socket)
		return Check{name, Unknown, err.Error(), advice(err, "")}
	case len(clients) == 0:
		return Check{name, Good, "none attached", ""}
	}
	var at []string
	for _, c := range clients {
		at = append(at, c.TTY+" (pid "+strconv.Itoa(c.PID)+")")
	}
	return Check{name, Good, "attached: " + strings.Join(at, ", "), ""}
}

// checkLogind warns where systemd ends all processes of a user who logs out
// (logind.conf(5), KillUserProcesses), unless the user lingers.
func checkLogind(user string) Check {
	files, _ := filepath.Glob("/etc/systemd/logind.conf.d/*.conf") // the pattern is well-formed
	kills := false
	for _, f := range append([]string{"/etc/systemd/logind.conf"}, files...) {
		data, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Check{"log out", Unknown, "could not be read: " + err.Error(), "loginctl show-session --property=KillUserProcesses"}
		}
		kills = logindKills(string(data), kills)
	}
	_, err := os.Stat(filepath.Join("/var/lib/systemd/linger", filepath.Base(user)))
	return judgeLogind(kills, user != "" && err == nil)
}

func judgeLogind(kills, lingers bool) Check {
	const name = "log out"
	switch {
	case !kills:
		return Check{name, Good, "what you start goes on when you log out", ""}
	case lingers:
		return Check{name, Good, "KillUserProcesses is on, and you linger: what you start goes on", ""}
	}
	return Check{name, Warning, "KillUserProcesses is on: systemd ends your tasks when you log out", "loginctl enable-linger"}
}

// logindKills reads KillUserProcesses; the last setting counts.
func logindKills(conf string, before bool) bool {
	for line := range strings.Lines(conf) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "KillUserProcesses=")
		if !ok {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(value)) {
		case "yes", "true", "1", "on":
			before = true
		default:
			before = false
		}
	}
	return before
}

// hostChecks are facts about the machine, for people and for `needs`.
func hostChecks(ctx context.Context) []Check {
	var checks []Check
	if v, err := mem.VirtualMemoryWithContext(ctx); err != nil {
		checks = append(checks, Check{"memory", Unknown, err.Error(), ""})
	} else {
		checks = append(checks, Check{"memory", Good, Bytes(int64(v.Available)) + " free of " + Bytes(int64(v.Total)), ""})
	}
	checks = append(checks, Check{"processors", Good, strconv.Itoa(runtime.NumCPU()), ""})
	if version, err := host.KernelVersionWithContext(ctx); err == nil {
		checks = append(checks, Check{"kernel", Good, version, ""})
	}
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		return append(checks, Check{"gpu", Good, path, ""})
	}
	return append(checks, Check{"gpu", Unknown, "no nvidia-smi on PATH: GPU memory is not known", ""})
}
