package sweep

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"

	"hob/identity"
)

// How much of the host was seen.
const (
	inspectedFull    = "full"
	inspectedPartial = "partial"
	inspectedNone    = "none"
)

// wanted is what a look-alike would share with the task. None of it is identity.
type wanted struct {
	marker, task string
	recipe       []string     // the command line as the recipe gives it
	commands     [][]string   // and as the captured members show it
	sessions     map[int]bool // kernel sessions that were born in the tree
	ports        map[int][]int
	gpus         map[int]string
	stamp        uint64 // 0: not asked for
	residents    []int  // who is in the task's cgroup
}

// What a look-alike is judged by, and what else it is described with.
const (
	judgedBy  = identity.WantArgs | identity.WantEnviron
	described = identity.WantUser | identity.WantStarted | identity.WantCwd
)

// why names each piece of evidence of grade D that a process shows.
func (w wanted) why(p identity.Process) []string {
	var why []string
	if w.marked(p.Environ) {
		why = append(why, string(Marker))
	}
	if w.commanded(p.Args) {
		why = append(why, string(Command))
	}
	for _, port := range w.ports[p.PID] {
		why = append(why, fmt.Sprintf("port %d", port))
	}
	if w.sessions[p.SID] && p.SID != p.PID {
		why = append(why, string(Session))
	}
	if slices.Contains(w.residents, p.PID) {
		why = append(why, string(Cgroup))
	}
	if gpu, ok := w.gpus[p.PID]; ok {
		why = append(why, "gpu "+gpu)
	}
	if w.stamp != 0 && p.Stamp == w.stamp {
		why = append(why, string(Stamp))
	}
	return why
}

// marked reports whether the environment carries the run's marker and does not
// say that it is another task's of the run.
func (w wanted) marked(environ []string) bool {
	if w.marker == "" || !slices.Contains(environ, "HOB_RUN_ID="+w.marker) {
		return false
	}
	other := func(e string) bool { return len(e) > 9 && e[:9] == "HOB_TASK=" && e[9:] != w.task }
	return !slices.ContainsFunc(environ, other)
}

func (w wanted) commanded(args []string) bool {
	if sameCommand(w.recipe, args) {
		return true
	}
	return slices.ContainsFunc(w.commands, func(c []string) bool { return slices.Equal(c, args) })
}

// sameCommand reports whether live is the recipe's command line, as it is or
// behind an interpreter: `vllm serve X` runs as `python3 /usr/bin/vllm serve X`.
func sameCommand(recipe, live []string) bool {
	if len(recipe) == 0 || len(live) < len(recipe) || len(live) > len(recipe)+1 {
		return false
	}
	tail := live[len(live)-len(recipe):]
	return path.Base(tail[0]) == path.Base(recipe[0]) && slices.Equal(tail[1:], recipe[1:])
}

// telling reports whether a command line says enough to be compared. Every
// shell on the host is called bash.
func telling(args []string) bool {
	return len(args) >= 2 || len(args) == 1 && path.IsAbs(args[0])
}

// scan is one look at the whole host, for what looks like the task's.
type scan struct {
	inspection string
	notes      []string
	lookalikes []Lookalike
	ports      []PortState
	stamps     stamps
}

// scan looks at the ports, the GPUs and the processes.
func (s *stopper) scan(ctx context.Context) scan {
	ports, holders := s.ports(ctx)
	gpus, gpuNotes := s.settleGPU(ctx)
	w := s.wanted()
	w.ports, w.gpus = holders, gpus
	orphans := s.orphanage()
	if orphans != kept {
		w.stamp = s.tr.t.Stamp
	}
	out := s.scanUntilSure(ctx, w)
	out.ports, out.notes = ports, append(out.notes, gpuNotes...)
	out.stamps.orphans, out.stamps.none = orphans, w.stamp == 0
	return out
}

// scanHost is one look at all processes.
func (s *stopper) scanHost(ctx context.Context, w wanted) scan {
	table, err := s.tr.h.Snapshot(ctx, w.fields())
	if err == nil && !table.SawSelf {
		err = errors.New("the process table does not show the process that reads it")
	}
	if err != nil {
		return scan{inspection: inspectedNone, notes: []string{fmt.Sprintf("the host could not be looked at: %v", err)}}
	}
	var out scan
	out.inspection, out.notes = inspectionOf(table)
	w.sessions = s.ownSessions(table)
	w.residents = s.tr.inHome()
	above := keepersIn(table)
	for _, p := range table.Procs {
		if l, ok := s.lookalike(p, w); ok {
			kept, told := above.of(p, s.ownKeeper())
			l.Keeper, l.vague = kept, !told
			out.lookalikes = append(out.lookalikes, l)
			out.stamps.borne += count01(slices.Contains(l.Why, string(Stamp)))
		} else if w.stamp != 0 {
			s.weigh(&out.stamps, p)
		}
	}
	if w.stamp != 0 {
		out.stamps.unread += len(table.Unreadable)
		for _, p := range table.Passing {
			out.stamps.gone += count01(p.Stamp == w.stamp && !s.ours(rowRef(p)))
		}
	}
	return out
}

// fields are what has to be read of each process.
func (w wanted) fields() identity.Field {
	if w.stamp != 0 {
		return judgedBy | identity.WantStamp
	}
	return judgedBy
}

// inspectionOf says how much of the host a table shows.
func inspectionOf(t *identity.Table) (string, []string) {
	var notes []string
	if t.Hidden {
		notes = append(notes, "other users' processes are hidden (hidepid): look-alikes among them cannot be seen")
	}
	if n := len(t.Unreadable); n > 0 {
		notes = append(notes, count(n)+" could not be read")
	}
	environs := 0
	for _, p := range t.Procs {
		if p.Missing&(identity.WantEnviron|identity.WantArgs) != 0 && !p.Kernel && p.State != 'Z' && p.PID > 1 {
			environs++
		}
	}
	if environs > 0 {
		notes = append(notes, "the environment of "+count(environs)+" could not be read: the marker was not looked for there")
	}
	if len(notes) > 0 {
		return inspectedPartial, notes
	}
	return inspectedFull, nil
}

func count(n int) string {
	if n == 1 {
		return "1 process"
	}
	return strconv.Itoa(n) + " processes"
}

// wanted gathers what a look-alike would share.
func (s *stopper) wanted() wanted {
	w := wanted{marker: s.tr.t.Marker, task: s.tr.t.Task}
	if s.tr.t.Kind != Shell {
		w.recipe = s.tr.t.Args
		for _, n := range s.tr.nodes {
			known := func(c []string) bool { return slices.Equal(c, n.Args) }
			if telling(n.Args) && n.Boundary == "" && !slices.ContainsFunc(w.commands, known) {
				w.commands = append(w.commands, n.Args)
			}
		}
	}
	return w
}

// ownSessions are the kernel sessions that were born in the tree, but for those
// whose number leads a stranger's session now.
func (s *stopper) ownSessions(table *identity.Table) map[int]bool {
	born := s.tr.bornSessions()
	for _, p := range table.Procs {
		if born[p.PID] && !s.ours(rowRef(p)) {
			delete(born, p.PID)
		}
	}
	return born
}

// ours reports whether a process is the keeper, a member, or one of those that
// are never named.
func (s *stopper) ours(ref identity.Ref) bool {
	same := func(r identity.Ref) bool {
		if ref.Boot == "" {
			return r.PID == ref.PID && r.Start == ref.Start
		}
		return sameProcess(r, ref)
	}
	if s.tr.keeper != nil && same(s.tr.keeper.Ref) || slices.ContainsFunc(s.tr.t.Spared, same) {
		return true
	}
	return slices.ContainsFunc(s.tr.nodes, func(n *node) bool { return same(n.Ref) })
}

// ownKeeper is the pid of the task's own keeper, 0 when it does not live.
func (s *stopper) ownKeeper() int {
	if s.tr.keeper == nil || !s.tr.keeper.living() {
		return 0
	}
	return s.tr.keeper.Ref.PID
}

// rowRef is what a row alone says of who the process is.
func rowRef(p identity.Process) identity.Ref { return identity.Ref{PID: p.PID, Start: p.Start} }

// lookalike judges a row; what shows evidence is pinned and read again, so that
// the pid and start that are named belong to what was seen.
func (s *stopper) lookalike(p identity.Process, w wanted) (Lookalike, bool) {
	if p.Kernel || p.PID <= 1 || p.State == 'Z' && p.Threads <= 1 || len(w.why(p)) == 0 {
		return Lookalike{}, false
	}
	ref := rowRef(p)
	p.UID = -1 // it was not asked for
	pin, err := s.tr.h.Open(p.PID)
	if err == nil {
		defer pin.Close()
		if ref = pin.Ref(); ref.UID != nil {
			p.UID = *ref.UID
		}
		if row, readErr := pin.Read(w.fields() | described); readErr == nil {
			p = row
		} else {
			err = readErr
		}
	}
	if slices.Contains(w.residents, p.PID) {
		w.residents = s.tr.inHome() // again, while it is pinned
	}
	why := w.why(p)
	if errors.Is(err, identity.ErrGone) || s.ours(ref) || len(why) == 0 {
		return Lookalike{}, false
	}
	l := Lookalike{PID: ref.PID, Start: ref.Start, Args: argsOf(p), User: userName(p.UID), Why: why, Note: whereabouts(p)}
	if started := p.Started; !started.IsZero() {
		l.StartedAt = &started
	}
	return l, true
}

// whereabouts says whose a look-alike says it is, and where it runs, as far as it shows.
func whereabouts(p identity.Process) string {
	var parts []string
	if text := whose(p.Environ); text != "" {
		parts = append(parts, text)
	}
	if p.Cwd != "" {
		parts = append(parts, "in "+p.Cwd)
	}
	return strings.Join(parts, ", ")
}

// whose says which hob task a process says it belongs to.
func whose(environ []string) string {
	var run, task string
	for _, e := range environ {
		switch {
		case len(e) > 8 && e[:8] == "HOB_RUN=":
			run = e[8:]
		case len(e) > 9 && e[:9] == "HOB_TASK=":
			task = e[9:]
		}
	}
	if run == "" || task == "" {
		return ""
	}
	return fmt.Sprintf("its environment says %s/%s", run, task)
}

func userName(uid int) string {
	if uid < 0 {
		return ""
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
