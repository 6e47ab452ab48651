package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hob/identity"
	"hob/tasks"
)

// step is one thing that is done, all of it decided by the seed.
type step struct {
	n     int
	pot   *pot
	name  string
	words []string      // for hob
	after time.Duration // when something happens to that hob
	pick  uint          // which of the tasks that are there then
	act   func(*soak, step)
}

// soakVerbs are what may be done, with how often it is.
var soakVerbs = []struct {
	weight int
	name   string
	act    func(*soak, step)
}{
	{22, "up", (*soak).plain},
	{13, "down", (*soak).plain},
	{8, "restart", (*soak).plain},
	{5, "rm", (*soak).plain},
	{4, "sweep", (*soak).plain},
	{4, "reap", (*soak).plain},
	{5, "ps", (*soak).plain},
	{3, "wait", (*soak).interrupted},
	{5, "run", (*soak).interrupted},
	{10, "killed", (*soak).killed},
	{6, "kill keeper", (*soak).killKeeper},
	{5, "kill command", (*soak).killCommand},
	{2, "kill server", (*soak).killServer},
	{2, "delete socket", (*soak).deleteSocket},
	{3, "tear", (*soak).tear},
	{2, "reboot", (*soak).reboot},
	{2, "another boot looks", (*soak).anotherBoot},
	{2, "type", (*soak).typeInShell},
}

func (s *soak) choose(rnd *rand.Rand, n int) step {
	total := 0
	for _, v := range soakVerbs {
		total += v.weight
	}
	at := rnd.IntN(total)
	for _, v := range soakVerbs {
		if at -= v.weight; at >= 0 {
			continue
		}
		st := step{n: n, pot: s.pots[[]int{0, 0, 0, 1, 2}[rnd.IntN(5)]], name: v.name, act: v.act,
			after: time.Duration(rnd.IntN(400)) * time.Millisecond, pick: uint(rnd.Uint32())}
		verb := v.name
		if verb == "killed" {
			verb = []string{"up", "up", "down", "restart", "run", "rm", "sweep", "reap"}[rnd.IntN(8)]
		}
		if verb == "reboot" {
			st.pot = s.pots[2]
		}
		st.words = wordsFor(rnd, verb)
		return st
	}
	panic("no verb")
}

// soakTasks are the tasks of the recipes.
var soakTasks = []string{"tree/s", "tree/j", "mix/late", "mix/deaf", "mix/sh", "crash/c", "jobs/good", "jobs/bad", "jobs/long", "net/n"}

func wordsFor(rnd *rand.Rand, verb string) []string {
	recipe := recipesOf[rnd.IntN(len(recipesOf))]
	what := recipe
	if rnd.IntN(3) == 0 {
		what = soakTasks[rnd.IntN(len(soakTasks))]
	}
	switch verb {
	case "up":
		words := []string{"up", recipe + ".yaml", "--quiet"}
		if run, task, one := strings.Cut(what, "/"); one {
			words[1] = run + ".yaml"
			words = append(words, task)
		}
		return words
	case "run":
		return []string{"run", recipe + ".yaml", "--name", fmt.Sprintf("run%d", rnd.IntN(2)), "--quiet"}
	case "down":
		if rnd.IntN(8) == 0 {
			return []string{"down", "--all", "--json"}
		}
		return []string{"down", what, "--json"}
	case "sweep":
		return []string{"sweep", "--json"}
	case "reap", "ps":
		return []string{verb, "--json"}
	case "rm":
		return []string{"rm", recipe}
	}
	return []string{verb, what}
}

// start starts a process that the test itself waits for.
func (s *soak) start(cmd *exec.Cmd) error {
	s.birth.RLock()
	defer s.birth.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[cmd.Process.Pid] = true
	return nil
}

// hob is a hob of this pot, in the boot that it sees.
func (p *pot) hobCommand(boot string, words ...string) *exec.Cmd {
	args := append([]string{p.bin}, words...)
	if boot != "" {
		const mount = `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`
		args = append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", mount, boot}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = p.dir, p.env
	p.penned(cmd)
	return cmd
}

// do runs a hob to its end; meanwhile may happen to it. One that hangs says where.
func (s *soak) do(st step, boot string, words []string, meanwhile func(*exec.Cmd)) result {
	p := st.pot
	p.still.RLock()
	defer p.still.RUnlock()
	cmd := p.hobCommand(boot, words...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := s.start(cmd); err != nil {
		s.t.Errorf("hob %v: %v", words, err)
		return result{code: -1}
	}
	s.at(p, cmd, true)
	defer s.at(p, cmd, false)
	s.note("%3d %s: hob %s [%d]", st.n, p.name, strings.Join(words, " "), cmd.Process.Pid)
	hung := time.AfterFunc(2*patience, func() {
		s.t.Errorf("step %d: hob %v hangs", st.n, words)
		_ = cmd.Process.Signal(syscall.SIGQUIT) // it shows where
	})
	defer hung.Stop()
	if meanwhile != nil {
		meanwhile(cmd)
	}
	_ = cmd.Wait()
	r := result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.code = 128 + int(ws.Signal())
	}
	s.judge(st, words, r)
	return r
}

// at notes which hobs are at work in a pot.
func (s *soak) at(p *pot, cmd *exec.Cmd, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there {
		p.live[cmd] = true
	} else {
		delete(p.live, cmd)
	}
}

// judge checks that a hob has ended as documented.
func (s *soak) judge(st step, words []string, r result) {
	s.mu.Lock()
	if s.codes[words[0]] == nil {
		s.codes[words[0]] = map[int]int{}
	}
	s.codes[words[0]][r.code]++
	s.mu.Unlock()
	first, _, _ := strings.Cut(r.err, "\n")
	s.note("%3d %s: hob %s: exit %d %.300s", st.n, st.pot.name, strings.Join(words, " "), r.code, first)
	if !slices.Contains([]int{0, 1, 2, 3, 4, 130, 128 + int(syscall.SIGKILL)}, r.code) || strings.Contains(r.err, "goroutine ") {
		s.t.Errorf("step %d: hob %v: %v", st.n, words, r)
	}
}

func (s *soak) plain(st step) { s.do(st, st.pot.boot, st.words, nil) }

// killed kills the hob in the middle.
func (s *soak) killed(st step) {
	s.do(st, st.pot.boot, st.words, func(cmd *exec.Cmd) {
		time.Sleep(st.after)
		_ = cmd.Process.Kill()
	})
}

// interrupted is for verbs that may go on for ever.
func (s *soak) interrupted(st step) {
	s.do(st, st.pot.boot, st.words, func(cmd *exec.Cmd) {
		time.Sleep(4 * st.after)
		_ = cmd.Process.Signal(os.Interrupt)
	})
}

// tasksThere are the tasks with records in a pot now.
func (p *pot) tasksThere() []*tasks.TaskDir {
	store, err := tasks.ViewStore(p.home)
	if err != nil {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(p.home, "runs/*/tasks/*/task.json"))
	var list []*tasks.TaskDir
	for _, path := range paths {
		dir := filepath.Dir(path)
		list = append(list, store.Run(filepath.Base(filepath.Dir(filepath.Dir(dir)))).Task(filepath.Base(dir)))
	}
	return list
}

func (st step) task() *tasks.TaskDir {
	list := st.pot.tasksThere()
	if len(list) == 0 {
		return nil
	}
	return list[st.pick%uint(len(list))]
}

// hit signals a process that a record names, if it is still that.
func (s *soak) hit(st step, ref *identity.Ref, sig syscall.Signal) bool {
	if ref == nil {
		return false
	}
	now := *ref
	now.Boot = st.pot.host.Facts().Boot // what the pot takes for its boot
	pin, _ := st.pot.host.Verify(now)
	if pin == nil {
		return false
	}
	defer pin.Close()
	s.note("%3d %s: %s: %s %d", st.n, st.pot.name, st.name, identity.SignalName(sig), ref.PID)
	return pin.Signal(sig) == nil
}

func (s *soak) killKeeper(st step) {
	if t := st.task(); t != nil {
		if k, err := t.ReadKeeper(); err == nil && s.hit(st, &k.Keeper, syscall.SIGKILL) && st.pick%2 == 0 {
			s.do(st, st.pot.boot, []string{"up", t.Run + ".yaml", "--quiet"}, nil)
		}
	}
}

func (s *soak) killCommand(st step) {
	if t := st.task(); t != nil {
		if k, err := t.ReadKeeper(); err == nil {
			s.hit(st, k.Command, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[st.pick%2])
		}
	}
}

func (s *soak) killServer(st step) {
	for _, name := range recipesOf {
		if run, err := st.pot.runOf(name); err == nil && s.hit(st, run.Tmux.Server, syscall.SIGKILL) {
			return
		}
	}
}

func (p *pot) runOf(name string) (tasks.Run, error) {
	store, err := tasks.ViewStore(p.home)
	if err != nil {
		return tasks.Run{}, err
	}
	return store.Run(name).Read()
}

func (s *soak) deleteSocket(st step) {
	sockets, _ := filepath.Glob(st.pot.path("rt/hob/*.sock"))
	for _, path := range sockets {
		s.note("%3d %s: %s %s", st.n, st.pot.name, st.name, path)
		_ = os.Remove(path)
	}
}

// typeInShell has a person leave a daemon behind in a shell.
func (s *soak) typeInShell(st step) {
	store, err := tasks.ViewStore(st.pot.home)
	if err != nil {
		return
	}
	run, err := store.Run("mix").Read()
	task, taskErr := store.Run("mix").Task("sh").ReadTask()
	if err != nil || taskErr != nil || task.Pane == nil {
		return
	}
	cmd := exec.Command("tmux", "-S", run.Tmux.Socket, "send-keys", "-t", task.Pane.Pane, "setsid sleep 600 &", "Enter")
	cmd.Env = st.pot.env
	if s.start(cmd) == nil {
		s.note("%3d %s: %s", st.n, st.pot.name, st.name)
		_ = cmd.Wait() // it may have gone
	}
}

// anotherBoot has a hob look that takes this for another boot: whatever it makes
// of the records, it acts on nothing.
func (s *soak) anotherBoot(st step) {
	boot := filepath.Join(st.pot.dir, fmt.Sprintf("boot%d", st.n))
	if err := os.WriteFile(boot, []byte(bootID(st.pick)), 0o600); err != nil {
		s.t.Error(err)
		return
	}
	s.do(st, boot, []string{"ps", "--all", "--json"}, nil)
	s.do(st, boot, []string{"reap", "--dry-run", "--json"}, nil)
}

func bootID(n uint) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x\n", n, time.Now().UnixNano()&0xffffffffffff)
}

func (p *pot) newBoot() {
	p.check(os.WriteFile(p.boot, []byte(bootID(0)), 0o600))
}

// reboot ends all that is of a pot at once, hobs too, and what comes after sees
// another boot id.
func (s *soak) reboot(st step) {
	p := st.pot
	s.mu.Lock()
	for cmd := range p.live {
		_ = cmd.Process.Kill()
	}
	s.mu.Unlock()
	p.still.Lock()
	defer p.still.Unlock()
	s.note("%3d %s: %s", st.n, p.name, st.name)
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		deadline := time.Now().Add(patience)
		for hit := map[int]bool{}; ; {
			again := false
			for _, proc := range p.markedNow() {
				if p.strange[proc.PID] || sig == syscall.SIGSTOP && hit[proc.PID] {
					continue
				}
				hit[proc.PID], again = true, true
				if pin, err := p.host.Open(proc.PID); err == nil {
					_ = pin.Signal(sig)
					pin.Close()
				}
			}
			if !again {
				break
			}
			if time.Now().After(deadline) {
				s.t.Errorf("step %d: the reboot does not end", st.n)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	for deadline := time.Now().Add(patience); p.pen.Empty() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Errorf("step %d: the cgroups outlive the reboot: %v", st.n, p.pen.Empty())
			return
		}
	}
	if err := os.WriteFile(p.boot, []byte(bootID(st.pick)), 0o600); err != nil {
		s.t.Error(err)
	}
	if st.pick%2 == 0 {
		_ = os.RemoveAll(p.path("rt/hob")) // /run is empty after a reboot
	}
}

// markedNow is marked for any goroutine.
func (p *pot) markedNow() []identity.Process {
	table, err := p.host.Snapshot(context.Background(), identity.WantArgs|identity.WantEnviron)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(table.Procs, func(q identity.Process) bool { return !p.marks(q) })
}
