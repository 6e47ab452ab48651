package e2e

import (
	"encoding/json"
	"os/exec"
	"testing"

	"hob/sweep"
)

// TestAReusedSessionNumber: the number of a session that was born in the tree is a
// stranger's session now. With the keeper gone too, sessions are what hob goes by;
// it goes by none of which a captured member is alive in it.
func TestAReusedSessionNumber(t *testing.T) {
	t.Parallel()
	k := open(t)
	needRoot(t)
	k.recipe(`name: m
servers:
  llm:
    command: [sh, -c, 'setsid sh -c "echo \$\$ >@D/leader; exec sleep 86462" & exec sleep 86463']
    stop: {grace: 500ms, term_grace: 500ms}
`)
	script := k.testdata("reuse.py")
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", python3, script, k.bin, k.d(), k.home+"/runs/m/tasks/llm")
	cmd.Dir, cmd.Env = k.dir, k.env
	k.penned(cmd)
	r := run(t, cmd)
	var got struct {
		Code, Sid, Leader int
		Alive             []bool
		Reports           []sweep.Report
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatalf("%v: %v", err, r)
	}
	if got.Sid != got.Leader {
		t.Fatalf("the stranger's session is %d, not %d: nothing was tested", got.Sid, got.Leader)
	}
	if !got.Alive[0] || !got.Alive[1] {
		t.Errorf("a stranger was ended: %v", got.Alive)
	}
	rep := got.Reports[0]
	if got.Code != 0 || rep.Verdict != sweep.Clean || len(rep.Lookalikes) > 0 || len(rep.Members) < 2 {
		t.Errorf("exit %d: %+v", got.Code, rep)
	}
}
