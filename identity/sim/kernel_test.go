//go:build unix

package sim

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func quietWorld(o Options) *World { return New(Quiet, o) }

func TestOrphansGoToTheNearestLivingSubreaper(t *testing.T) {
	for _, c := range []struct {
		name        string
		o           Options
		killNearest bool
		want        func(init, far, near *Process) *Process
	}{
		{"nearest", Options{}, false, func(_, _, near *Process) *Process { return near }},
		{"nearest is dead", Options{}, true, func(_, far, _ *Process) *Process { return far }},
		{"no subreapers", Options{NoSubreaper: true}, false, func(init, _, _ *Process) *Process { return init }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := quietWorld(c.o)
			far := w.Spawn(w.Init(), Proc{Subreaper: true})
			near := w.Spawn(far, Proc{Subreaper: true})
			parent := near.Fork(Proc{})
			child := parent.Fork(Proc{})
			if c.killNearest {
				near.Exit()
			}
			parent.Exit()
			if got := child.Parent(); got != c.want(w.Init(), far, near) {
				t.Fatalf("reparented to %v", got)
			}
		})
	}
}

func TestSubreaperIsNotInherited(t *testing.T) {
	w := quietWorld(Options{})
	r := w.Spawn(w.Init(), Proc{Subreaper: true})
	mid := r.Fork(Proc{})
	leaf := mid.Fork(Proc{})
	r.Exit()
	mid.Exit()
	if leaf.Parent() != w.Init() {
		t.Fatalf("parent %v", leaf.Parent())
	}
}

// A number stays taken while anything holds it: the process, its zombie, a
// group, a session, a thread. A pin does not hold it.
func TestNumbersAreHeld(t *testing.T) {
	free := func(w *World, pid int) bool { return w.held[pid] == 0 }
	t.Run("zombie", func(t *testing.T) {
		w := quietWorld(Options{})
		lazy := w.Spawn(w.Init(), Proc{NeverReap: true})
		p := lazy.Fork(Proc{})
		p.Exit()
		if !p.Zombie() || free(w, p.PID()) {
			t.Fatal("a zombie does not hold its number")
		}
		lazy.Exit() // init inherits the corpse, and reaps it
		if p.Zombie() || !free(w, p.PID()) {
			t.Fatal("not reaped by init")
		}
	})
	t.Run("session and group", func(t *testing.T) {
		w := quietWorld(Options{})
		leader := w.Spawn(w.Init(), Proc{Setsid: true})
		member := leader.Fork(Proc{})
		leader.Exit()
		if w.Find(leader.PID()) != nil || free(w, leader.PID()) {
			t.Fatal("a session does not hold its number")
		}
		member.Setsid()
		if !free(w, leader.PID()) {
			t.Fatal("an empty session holds its number")
		}
	})
	t.Run("thread", func(t *testing.T) {
		w := quietWorld(Options{})
		p := w.Spawn(w.Init(), Proc{Threads: 1})
		tid := p.tids[0]
		if free(w, tid) {
			t.Fatal("a thread does not hold its number")
		}
		p.Exit()
		if !free(w, tid) {
			t.Fatal("a dead thread holds its number")
		}
	})
	t.Run("pin", func(t *testing.T) {
		w := quietWorld(Options{})
		p := w.Spawn(w.Init(), Proc{})
		h, err := w.Host().Open(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		p.Exit()
		if !free(w, p.PID()) {
			t.Fatal("a pin holds the number")
		}
	})
}

func TestNumbersAreReused(t *testing.T) {
	w := quietWorld(Options{PIDs: 6})
	a := w.Spawn(w.Init(), Proc{})
	a.Exit()
	var b *Process
	for range 6 {
		b = w.Spawn(w.Init(), Proc{})
		if b.PID() == a.PID() {
			break
		}
		b.Exit()
	}
	if b.PID() != a.PID() || b.Serial() == a.Serial() || *b.Ref().PIDFS == *a.Ref().PIDFS {
		t.Fatalf("a %v, b %v", a, b)
	}
}

// Without a pidfs two holders of a number are told apart by their ticks alone.
func TestWithoutPidfsNoNumberTwiceInATick(t *testing.T) {
	for _, same := range []bool{false, true} {
		w := New(Seed(1), Options{NoPidfs: true, SameTick: same, Chaos: Chaos{Reuse: 100}})
		a := w.Spawn(w.Init(), Proc{})
		a.Exit()
		b := w.Spawn(w.Init(), Proc{})
		if got := b.PID() == a.PID(); got != same {
			t.Errorf("SameTick %v: reused %v", same, got)
		}
		w.Pass(tick)
		b.Exit()
		if c := w.Spawn(w.Init(), Proc{}); c.PID() != a.PID() && c.PID() != b.PID() {
			t.Errorf("SameTick %v: not reused in another tick: %v", same, c)
		}
	}
}

func TestForkAndExec(t *testing.T) {
	w := quietWorld(Options{})
	p := w.Spawn(w.Init(), Proc{
		Args: []string{"/bin/srv", "--port", "1"}, Env: []string{"A=1"}, Cwd: "/d", User: 7, Tree: "t",
		Setsid: true, TTY: 3, Ignore: []syscall.Signal{syscall.SIGHUP}, Threads: 2, Listen: []int{80},
	})
	c := p.Fork(Proc{})
	if c.sid != p.pid || c.pgid != p.pid || c.tty != 3 || c.uid != 7 || c.cwd != "/d" || c.tree != "t" ||
		c.ignored != p.ignored || len(c.sockets) != 1 || c.threads() != 1 || !slices.Equal(c.args, p.args) {
		t.Fatalf("child %+v", c)
	}
	before := c.Ref()
	c.Exec("", "/bin/other", "x")
	after := c.Ref()
	if before.PID != after.PID || before.Start != after.Start || *before.PIDFS != *after.PIDFS {
		t.Error("exec changed the identity")
	}
	if c.comm != "other" || c.ignored != p.ignored {
		t.Error("exec: comm or ignored signals", c.comm, c.ignored)
	}
}

func TestSetsidNeedsNoGroupLeader(t *testing.T) {
	w := quietWorld(Options{})
	p := w.Spawn(w.Init(), Proc{Setpgid: true})
	if p.Setsid() {
		t.Error("a group leader made a session")
	}
	if c := p.Fork(Proc{}); !c.Setsid() || c.sid != c.pid || c.pgid != c.pid {
		t.Error("a member could not")
	}
}

func TestHangup(t *testing.T) {
	w := quietWorld(Options{})
	sh := w.Spawn(w.Init(), Proc{Setsid: true, TTY: 5})
	plain := sh.Fork(Proc{})
	own := sh.Fork(Proc{Setpgid: true})
	nohup := sh.Fork(Proc{Ignore: []syscall.Signal{syscall.SIGHUP}})
	away := sh.Fork(Proc{Setsid: true})
	w.Hangup(5)
	// The leader dies of HUP; its end hangs up the foreground group, which is its own.
	for p, want := range map[*Process]bool{sh: false, plain: false, own: true, nohup: true, away: true} {
		if p.Alive() != want || p.TTY() != 0 {
			t.Errorf("%v: alive %v, tty %d", p, p.Alive(), p.TTY())
		}
	}
}

// A leader that takes HUP and lives keeps it from its pane: nobody else hears of it.
func TestHangupOfAKeeper(t *testing.T) {
	w := quietWorld(Options{})
	keeper := w.Keeper(w.Init(), 5, Proc{EndsEmpty: true})
	cmd := keeper.Fork(Proc{})
	w.Hangup(5)
	if !keeper.Alive() || !cmd.Alive() || cmd.TTY() != 0 {
		t.Fatal("keeper", keeper.Alive(), "command", cmd.Alive())
	}
	daemon := cmd.Fork(Proc{Setsid: true})
	cmd.Exit()
	if daemon.Parent() != keeper || keeper.Empty() {
		t.Fatal("the keeper did not inherit the daemon")
	}
	daemon.Exit()
	if !keeper.Empty() {
		t.Fatal("wait did not say ECHILD")
	}
	w.Pass(time.Second)
	if keeper.Alive() {
		t.Fatal("the keeper stays")
	}
}

func TestStoppedOrphanGroupsAreWoken(t *testing.T) {
	w := quietWorld(Options{})
	shell := w.Spawn(w.Init(), Proc{Setsid: true})
	job := shell.Fork(Proc{Setpgid: true, Do: []Behaviour{Swallow(syscall.SIGHUP)}})
	job.Stop()
	shell.Exit()
	if job.state != running {
		t.Fatal("a stopped orphan group was not continued")
	}
}

func TestSignals(t *testing.T) {
	const term, kill, cont = syscall.SIGTERM, syscall.SIGKILL, syscall.SIGCONT
	for _, c := range []struct {
		name  string
		d     Proc
		sigs  []syscall.Signal
		alive bool
	}{
		{"term kills", Proc{}, []syscall.Signal{term}, false},
		{"ignored", Proc{Ignore: []syscall.Signal{term}}, []syscall.Signal{term}, true},
		{"kill cannot be ignored", Proc{Ignore: []syscall.Signal{kill}}, []syscall.Signal{kill}, false},
		{"stuck", Proc{Stuck: true}, []syscall.Signal{term, kill}, true},
		{"window change", Proc{}, []syscall.Signal{syscall.SIGWINCH}, true},
		{"kernel thread", Proc{Kernel: true}, []syscall.Signal{kill}, true},
		{"stopped: pending", Proc{}, []syscall.Signal{syscall.SIGSTOP, term}, true},
		{"stopped: delivered later", Proc{}, []syscall.Signal{syscall.SIGSTOP, term, cont}, false},
		{"stopped: kill", Proc{}, []syscall.Signal{syscall.SIGSTOP, kill}, false},
		{"exits on term, later", Proc{Do: []Behaviour{ExitOn(term, time.Hour)}}, []syscall.Signal{term}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := quietWorld(Options{})
			p := w.Spawn(w.Init(), c.d)
			for _, s := range c.sigs {
				w.Kill(p, s)
			}
			if p.Alive() != c.alive {
				t.Errorf("alive %v", p.Alive())
			}
		})
	}
}

func TestStuckDiesOfWhatWasPending(t *testing.T) {
	w := quietWorld(Options{})
	p := w.Spawn(w.Init(), Proc{Stuck: true})
	w.Kill(p, syscall.SIGKILL)
	p.Unstick()
	if p.Alive() {
		t.Fatal("lives")
	}
}

func TestInitCannotBeKilled(t *testing.T) {
	w := quietWorld(Options{})
	w.Kill(w.Init(), syscall.SIGKILL)
	w.Init().Exit()
	if !w.Init().Alive() {
		t.Fatal("init is dead")
	}
}

func TestBehaviours(t *testing.T) {
	living := func(w *World) (n int) {
		for _, p := range w.Processes() {
			if p.Tree() == "t" && p.Alive() {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name string
		d    Proc
		pass time.Duration
		want int
	}{
		{"burst", Proc{Tree: "t", Do: []Behaviour{Fan(5, 0, Proc{})}}, 0, 6},
		{"one after another", Proc{Tree: "t", Do: []Behaviour{Fan(5, time.Millisecond, Proc{})}}, 3 * time.Millisecond, 4},
		{"chain", Chain(4, time.Millisecond, Proc{Tree: "t"}), 3500 * time.Microsecond, 1},
		{"chain at its end", Chain(4, time.Millisecond, Proc{Tree: "t"}), 5 * time.Millisecond, 0},
		{"daemon", Proc{Tree: "t", Do: []Behaviour{Daemon(time.Millisecond, Proc{})}}, 5 * time.Millisecond, 2},
		{"ends by itself", Proc{Tree: "t", Do: []Behaviour{ExitAfter(time.Millisecond)}}, 5 * time.Millisecond, 0},
		{"respawner", Proc{Tree: "t", Do: []Behaviour{Respawn(9, time.Millisecond, Proc{Do: []Behaviour{ExitAfter(time.Millisecond)}})}}, 8500 * time.Microsecond, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := quietWorld(Options{})
			w.Spawn(w.Init(), c.d)
			w.Pass(c.pass)
			if got := living(w); got != c.want {
				t.Errorf("%d live, want %d\n%s", got, c.want, strings.Join(w.Trace(), "\n"))
			}
		})
	}
}

func TestForkOnTermAndLeave(t *testing.T) {
	w := quietWorld(Options{})
	stay := w.Spawn(w.Init(), Proc{Do: []Behaviour{ForkOn(syscall.SIGTERM, Proc{})}})
	leave := w.Spawn(w.Init(), Proc{Do: []Behaviour{LeaveOn(syscall.SIGTERM, Proc{Comm: "left"})}})
	w.Kill(stay, syscall.SIGTERM)
	w.Kill(leave, syscall.SIGTERM)
	if !stay.Alive() || len(stay.Children()) != 1 || leave.Alive() {
		t.Fatal(stay.Alive(), stay.Children(), leave.Alive())
	}
}
