package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// serversAlive are the pids of the tmux servers of this kitchen. A process that one
// of them has just forked, and that is to be a pane's, is called so too, and is none.
func (k *kitchen) serversAlive() []int {
	called := map[int]int{} // and their parents
	for _, p := range k.marked() {
		if strings.HasPrefix(p.Comm, "tmux: server") {
			called[p.PID] = p.PPID
		}
	}
	var pids []int
	for pid, parent := range called {
		if _, child := called[parent]; !child {
			pids = append(pids, pid)
		}
	}
	return pids
}

// loseSocket deletes the server's socket, as who tidies /tmp does.
func (k *kitchen) loseSocket() {
	k.t.Helper()
	sockets, err := filepath.Glob(k.path("rt/hob/*.sock"))
	k.check(err)
	if len(sockets) != 1 {
		k.t.Fatalf("sockets: %q", sockets)
	}
	k.check(os.Remove(sockets[0]))
}

const serverRecipe = `
name: m
servers:
  a: {command: [sh, -c, "exec sleep 86480"], stop: {grace: 200ms, term_grace: 200ms}}
  b: {command: [sh, -c, "exec sleep 86481"], stop: {grace: 200ms, term_grace: 200ms}}
`

// upCutAtSpawn is an up that is killed as soon as tmux has made the panes.
func (k *kitchen) upCutAtSpawn() {
	k.t.Helper()
	if r := k.hobWith([]string{"HOB_CUT=cut=tmux spawned"}, "up"); r.code != 128+int(syscall.SIGKILL) {
		k.t.Fatalf("the up was not cut: %v", r)
	}
}

// TestServerOfACutStart: the hob that has started the tmux server is killed before it
// could write down which process that is, and somebody deletes the socket. The
// keeper knows the server: no second one is started, and none is left behind.
func TestServerOfACutStart(t *testing.T) {
	for name, next := range map[string][][]string{
		"up":        {{"up"}, {"down", "--all"}},
		"another":   {{"up", "--name", "n"}, {"down", "--all"}},
		"down":      {{"down", "--all"}},
		"down, rm":  {{"down", "m"}, {"rm", "m"}},
		"up, again": {{"up"}, {"down", "m"}, {"up"}, {"down", "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openCuttable(t)
			k.recipe(serverRecipe)
			k.upCutAtSpawn()
			k.until("a command", func() bool {
				for _, task := range []string{"m/a", "m/b"} {
					if rec, err := k.task(task).ReadKeeper(); err == nil && rec.Command != nil {
						return true
					}
				}
				return false
			})
			first := k.serversAlive()
			if len(first) != 1 {
				t.Fatalf("servers: %v", first)
			}
			k.loseSocket()
			for _, words := range next {
				k.must(words...)
				if now := k.serversAlive(); words[0] == "up" && len(now) != 1 {
					t.Errorf("after hob %v the servers are %v", words, now)
				}
			}
			if now := k.serversAlive(); len(now) > 0 {
				t.Errorf("in the end the servers are %v", now)
			}
		})
	}
}

// TestManyUpsOneServer: runs that come up at once while the last pane of another
// closes, and its server with it, all end up in one server.
func TestManyUpsOneServer(t *testing.T) {
	t.Parallel()
	k := open(t)
	k.recipe(serverRecipe)
	for range 2 {
		k.must("up")
		var wg sync.WaitGroup
		all := [][]string{{"down", "m"}, {"up", "--name", "x"}, {"up", "--name", "y"}, {"up", "--name", "z"}}
		for _, words := range all {
			cmd := k.command(words...)
			wg.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("hob %v: %v\n%s", words, err, out)
				}
			})
		}
		wg.Wait()
		if now := k.serversAlive(); len(now) != 1 {
			t.Errorf("servers: %v", now)
		}
		k.must("down", "--all")
		if now := k.serversAlive(); len(now) != 0 {
			t.Errorf("servers in the end: %v", now)
		}
	}
}

// TestPaneOfACutStart: hob and the keeper that it has started are killed before
// either could write anything down. The dead pane is of no record, and is closed
// all the same, whatever its window is called: the server would live for it alone.
func TestPaneOfACutStart(t *testing.T) {
	for name, next := range map[string][][]string{
		"down":       {{"down", "--all"}},
		"up, down":   {{"up"}, {"down", "m"}},
		"rm":         {{"down", "m/a", "m/b"}, {"rm", "m"}},
		"other runs": {{"up", "--name", "n"}, {"down", "m"}, {"down", "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openCuttable(t)
			k.recipe(serverRecipe + "layout:\n  - {window: both, panes: [a, b]}\n")
			k.check(os.WriteFile(k.path("home.cut"), []byte("cut=keeper cgroup"), 0o600))
			k.upCutAtSpawn()
			k.until("the keeper to be killed", func() bool { return len(k.marked()) == len(k.serversAlive()) })
			k.check(os.Remove(k.path("home.cut")))
			for _, words := range next {
				k.must(words...)
			}
			if now := k.serversAlive(); len(now) > 0 {
				t.Errorf("in the end the servers are %v", now)
			}
		})
	}
}
