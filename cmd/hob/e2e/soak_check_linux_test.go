package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hob/identity"
	"hob/sweep"
	"hob/tasks"
)

// adopt reaps the orphans that come to the soak's process, as init would.
func (s *soak) adopt(stop chan struct{}) {
	host := s.pots[0].host
	for {
		s.birth.Lock()
		kids, _ := host.Children(os.Getpid())
		for _, pid := range kids {
			s.mu.Lock()
			own := s.mine[pid]
			s.mu.Unlock()
			if !own {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			}
		}
		s.birth.Unlock()
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// readNames takes up who is named in the reports that are there now: what was
// only seen, and what was left.
func (s *soak) readNames(p *pot) {
	for _, path := range p.glob("report.json") {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var rep sweep.Report
		if json.Unmarshal(text, &rep) != nil {
			continue
		}
		s.mu.Lock()
		for _, l := range rep.Lookalikes {
			s.named[proc{l.PID, l.Start}] = path
		}
		for _, m := range rep.Members {
			if m.Fate == sweep.Survived || m.Fate == sweep.Spared || m.Fate == sweep.Unverifiable {
				s.named[proc{m.PID, m.Start}] = path
			}
		}
		s.mu.Unlock()
	}
}

// glob are the files of this name of all tasks, the archive's too.
func (p *pot) glob(name string) []string {
	paths, _ := filepath.Glob(filepath.Join(p.home, "*/*/tasks/*", name))
	return paths
}

// settled waits until every process is accounted for.
func (s *soak) settled(when string) {
	s.note("--- %s", when)
	var left []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if left = s.unexplained(); len(left) == 0 || s.t.Failed() {
			return
		}
	}
	s.t.Errorf("%s nobody accounts for\n%s", when, strings.Join(left, "\n"))
}

// brood are the living processes that the soak has brought about, but for those
// that the test itself waits for.
func (s *soak) brood() []identity.Process {
	table, err := s.pots[0].host.Snapshot(context.Background(), identity.WantArgs|identity.WantEnviron)
	if err != nil {
		s.t.Errorf("the host cannot be looked at: %v", err)
		return nil
	}
	below := map[int]bool{os.Getpid(): true}
	for again := true; again; {
		again = false
		for _, p := range table.Procs {
			if below[p.PPID] && !below[p.PID] {
				below[p.PID], again = true, true
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(table.Procs, func(p identity.Process) bool {
		marked := slices.ContainsFunc(s.pots, func(pot *pot) bool { return pot.marks(p) })
		return p.PID == os.Getpid() || dead(p) || s.mine[p.PID] || !below[p.PID] && !marked
	})
}

// account is what the records of a pot say now.
type account struct {
	states map[string]tasks.State // by run id and task
}

func (s *soak) accountOf(p *pot) account {
	a := account{states: map[string]tasks.State{}}
	r := s.do(step{pot: p, name: "account"}, p.boot, []string{"ps", "--json"}, nil)
	var list []struct {
		Run, Task string
		State     tasks.State
	}
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		s.t.Errorf("hob ps: %v: %v", err, r)
	}
	for _, st := range list {
		if run, err := p.runOf(st.Run); err == nil {
			a.states[run.ID+"/"+st.Task] = st.State
		}
	}
	return a
}

// unexplained are the living processes that no record accounts for.
func (s *soak) unexplained() []string {
	accounts := map[*pot]account{}
	for _, p := range s.pots {
		s.readNames(p)
		accounts[p] = s.accountOf(p)
	}
	var left []string
	servers := map[string]int{}
	for _, p := range s.brood() {
		if why := s.unexplainedOne(p, accounts, servers); why != "" {
			left = append(left, line(p)+"\n\t"+why)
		}
	}
	return left
}

func (s *soak) unexplainedOne(p identity.Process, accounts map[*pot]account, servers map[string]int) string {
	if strings.HasPrefix(p.Comm, "tmux: server") {
		socket := after(p.Args, "-S")
		if servers[socket]++; servers[socket] > 1 {
			return "a second tmux server of this socket"
		}
		return ""
	}
	if len(p.Args) == 3 && p.Args[1] == "keeper" {
		return keeperOf(p)
	}
	id, task := variable(p, "HOB_RUN_ID"), variable(p, "HOB_TASK")
	if id == "" {
		return "it bears no marker"
	}
	for _, a := range accounts {
		state, known := a.states[id+"/"+task]
		if known && !state.Settled() {
			return ""
		}
		if known && s.nameOf(p) == "" {
			return fmt.Sprintf("its task %s is %s, and no report names it", task, state)
		}
	}
	if s.nameOf(p) == "" {
		return "its run " + id + " is no more, and no report names it"
	}
	return ""
}

// keeperOf says what is wrong with a keeper, "" for the one that is written down.
func keeperOf(p identity.Process) string {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(p.Args[2]), "keeper.json"))
	var rec tasks.Keeper
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil || rec.Keeper.PID != p.PID {
		return fmt.Sprintf("a keeper, and written down is %d (%v)", rec.Keeper.PID, err)
	}
	return ""
}

func (s *soak) nameOf(p identity.Process) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named[proc{p.PID, p.Start}]
}

func variable(p identity.Process, name string) string {
	for _, kv := range p.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func after(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// end stops all there is and checks what is left: nothing but what was only named,
// since nobody can prove any more whose it is. A person ends that. Then all is
// clean, and every record says how its task ended.
func (s *soak) end() {
	for _, p := range s.pots {
		st := step{pot: p, name: "end"}
		for _, words := range [][]string{{"reap", "--json"}, {"down", "--all", "--json"}, {"sweep", "--json"}} {
			s.do(st, p.boot, words, nil)
			s.readNames(p)
		}
	}
	s.endNamed()
	for _, p := range s.pots {
		st := step{pot: p, name: "end"}
		for _, words := range [][]string{{"down", "--all", "--json"}, {"sweep", "--json"}} {
			if r := s.do(st, p.boot, words, nil); r.code != 0 {
				s.t.Errorf("in the end, %s: hob %v: %v", p.name, words, r)
			}
			s.readNames(p)
		}
		s.finished(p)
	}
	for _, p := range s.brood() {
		s.t.Errorf("left in the end: %s", line(p))
	}
}

// endNamed ends what is left: all of it stands in a report.
func (s *soak) endNamed() {
	for _, p := range s.brood() {
		where := s.nameOf(p)
		if where == "" {
			s.t.Errorf("left, and in no report: %s (run %s, task %s)", line(p), variable(p, "HOB_RUN_ID"), variable(p, "HOB_TASK"))
		}
		s.note("left, and named in %s: %s", where, line(p))
		if pin, err := s.pots[0].host.Open(p.PID); err == nil {
			_ = pin.Signal(syscall.SIGKILL)
			_ = s.pots[0].host.Wait(context.Background(), []identity.Handle{pin}, time.Now().Add(patience))
			pin.Close()
		}
	}
}

// finished checks that each record is in a final state, and says why.
func (s *soak) finished(p *pot) {
	r := s.do(step{pot: p, name: "end"}, p.boot, []string{"ps", "--all", "--verbose"}, nil)
	if r.code != 0 {
		s.t.Errorf("in the end, %s: hob ps: %v", p.name, r)
	}
	for row := range strings.Lines(r.out) {
		if f := strings.Split(row, "\t"); !tasks.State(f[3]).Settled() {
			s.t.Errorf("in the end, %s: %s", p.name, row)
		}
	}
	for _, path := range p.glob("task.json") {
		if err := explained(filepath.Dir(path)); err != nil {
			s.t.Errorf("%s: %v", path, err)
		}
	}
}

// explained checks that a task's records say how it ended.
func explained(dir string) error {
	var task tasks.Task
	var exit tasks.Exit
	text, err := os.ReadFile(filepath.Join(dir, "task.json"))
	if err = errors.Join(err, json.Unmarshal(text, &task)); err != nil {
		return err
	}
	if text, err := os.ReadFile(filepath.Join(dir, "exit.json")); err == nil {
		if err := json.Unmarshal(text, &exit); err != nil {
			return err
		}
	}
	_, tornErr := os.Stat(filepath.Join(dir, "exit.json.torn")) // as the host went down; the events say so
	switch {
	case tornErr == nil && task.State.Settled():
		return nil
	case !task.State.Settled():
		return fmt.Errorf("it is %s", task.State)
	case task.State == tasks.Stopped && task.Reason == "":
		return errors.New("it is stopped, and nobody says why")
	case task.State == tasks.Failed && task.Error == "" && exit.Nonce != task.Nonce:
		return errors.New("it has failed, and nobody says why")
	case (task.State == tasks.Exited || task.State == tasks.Completed) && (exit.Nonce != task.Nonce || exit.Code == nil):
		return fmt.Errorf("it is %s, and its exit code is not known", task.State)
	}
	return nil
}
