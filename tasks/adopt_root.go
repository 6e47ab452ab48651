package tasks

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"hob/identity"
)

// chosen is what of a pane is adopted.
type chosen struct {
	Command    int   // what is asked to end
	Others     []int // the rest of a pipeline, which ends with it
	Shell      bool  // the pane's first process is a person's shell, and stays
	Background []int // jobs of that shell that stay as well
}

// chooseRoot decides which process of a pane is adopted. It is pure. Where the
// pane's first process has given its terminal to another group (tcsetpgrp(3)), as
// shells do that a person types into, it is that job; else it is the first process
// itself, unless that is a shell at its prompt. Of a number without a row lives
// tells whether it has ended or is hidden from us (hidepid).
func chooseRoot(procs []identity.Process, first int, lives func(pid int) bool) (chosen, error) {
	v := paneView{rows: map[int]identity.Process{}, first: first, lives: lives}
	for _, p := range procs {
		v.rows[p.PID] = p
	}
	p, ok := v.rows[first]
	switch {
	case !ok && lives(first):
		return chosen{}, unverified("", "its first process, %d, lives and could not be looked at", first)
	case !ok || p.State == 'Z' && p.Threads <= 1:
		return chosen{}, usage("", "its first process, %d, has ended", first)
	case p.TPGID >= 1 && p.TPGID != p.PGID:
		return v.foreground(p)
	case !typedInto(p.Args):
		return chosen{Command: first}, v.fit(p)
	case p.TPGID < 1:
		return chosen{}, unverified("", "this system does not say which job of its terminal is in the foreground")
	}
	jobs := v.background(p)
	return chosen{Shell: true, Background: jobs}, v.idle(jobs)
}

// paneView is the process table as one pane needs it.
type paneView struct {
	rows  map[int]identity.Process
	first int
	lives func(pid int) bool
}

// foreground chooses the job that the pane's shell has in the foreground.
func (v paneView) foreground(shell identity.Process) (chosen, error) {
	c := chosen{Shell: true, Background: v.background(shell)}
	tops := v.tops(shell)
	if _, seen := v.rows[shell.TPGID]; !seen && len(tops) == 0 && v.lives(shell.TPGID) {
		return c, unverified("", "its foreground job, process %d, lives and could not be looked at", shell.TPGID)
	}
	if len(tops) == 0 {
		return c, v.idle(c.Background)
	}
	leads := slices.Index(tops, shell.TPGID)
	switch {
	case leads >= 0:
	case len(tops) == 1:
		leads = 0 // the first of a pipeline has ended, and led its group
	default:
		return c, usage("name the one that serves by starting it alone in a pane", "its foreground job is %d processes, and the one that led them has ended", len(tops))
	}
	c.Command = tops[leads]
	c.Others = slices.Delete(tops, leads, leads+1)
	row := v.rows[c.Command]
	if typedInto(row.Args) {
		return c, v.idle(c.Background) // a shell in the shell, at its prompt
	}
	return c, v.fit(row)
}

// tops are the members of the foreground group whose parents are not in it, and
// that hang below the pane's first process; in the order of their numbers.
func (v paneView) tops(shell identity.Process) []int {
	in := func(p identity.Process) bool {
		return p.PGID == shell.TPGID && p.SID == shell.SID && p.PID != shell.PID && p.State != 'Z'
	}
	var tops []int
	for pid, p := range v.rows {
		if in(p) && !in(v.rows[p.PPID]) && v.below(pid) {
			tops = append(tops, pid)
		}
	}
	slices.Sort(tops)
	return tops
}

// below reports whether a process hangs below the pane's first one.
func (v paneView) below(pid int) bool {
	for range len(v.rows) {
		if pid == v.first {
			return true
		}
		p, ok := v.rows[pid]
		if !ok {
			return false
		}
		pid = p.PPID
	}
	return false
}

// background are the leaders of the other jobs in the shell's session.
func (v paneView) background(shell identity.Process) []int {
	var jobs []int
	for pid, p := range v.rows {
		if p.SID == shell.SID && p.PGID == pid && pid != shell.PID && pid != shell.TPGID && p.State != 'Z' && !typedInto(p.Args) {
			jobs = append(jobs, pid)
		}
	}
	slices.Sort(jobs)
	return jobs
}

func (v paneView) idle(background []int) error {
	if len(background) == 0 {
		return usage("", "a shell is in it, and nothing runs in its foreground")
	}
	var jobs []string
	for _, pid := range background {
		jobs = append(jobs, fmt.Sprintf("%d (%s)", pid, path.Base(nameOf(v.rows[pid]))))
	}
	return usage("fg brings one of them to the foreground", "a shell is in it, and what runs there is in the background: %s", strings.Join(jobs, ", "))
}

// fit refuses what is no server: a terminal that shows another tmux.
func (v paneView) fit(p identity.Process) error {
	if strings.HasPrefix(p.Comm, "tmux: client") {
		return usage("adopt the pane of that tmux: hob adopt -S SOCKET %ID", "process %d in it shows another tmux", p.PID)
	}
	return nil
}

func nameOf(p identity.Process) string {
	if len(p.Args) == 0 {
		return p.Comm
	}
	return p.Args[0]
}

// shells are the programs that a person types into.
var shells = []string{"sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "ksh93", "mksh", "oksh", "rksh", "rbash", "yash", "tcsh", "csh", "nu", "elvish", "xonsh", "pwsh"}

// typedInto reports whether a command line is a shell's that reads what a person
// types: it has neither a script nor a command (-c) to run.
func typedInto(args []string) bool {
	if len(args) > 1 && path.Base(args[0]) == "busybox" {
		args = args[1:]
	}
	if len(args) == 0 || !slices.Contains(shells, strings.TrimPrefix(path.Base(args[0]), "-")) {
		return false
	}
	for i := 1; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains([]string{"--rcfile", "--init-file", "-o", "+o", "-O", "+O"}, a):
			i++ // its value
		case a == "-c", a == "--command", a == "--commands", strings.HasPrefix(a, "--command="):
			return false
		case a == "--", a == "-":
			return i == len(args)-1
		case strings.HasPrefix(a, "--"), strings.HasPrefix(a, "+"):
		case strings.HasPrefix(a, "-"):
			if strings.Contains(a, "c") {
				return false
			}
		default:
			return false
		}
	}
	return true
}
