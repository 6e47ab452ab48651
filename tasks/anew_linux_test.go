package tasks

import (
	"errors"
	"os"
	"testing"

	"hob/identity"
)

// The state folder was removed while a task ran, and an up has made it anew: the
// earlier keeper, which lives on, writes nothing over the records of the next start.
func TestAnEarlierKeeperWritesNothing(t *testing.T) {
	r, d := newTask(t)
	task := testTask()
	task.Nonce = "next"
	if err := errors.Join(d.WriteTask(task), d.WriteKeeper(Keeper{Nonce: "next"})); err != nil {
		t.Fatal(err)
	}
	k := &keeper{h: localHost(t), run: r, dir: d, spec: Spec{Nonce: "earlier"}, rec: Keeper{Nonce: "earlier"}}
	if err := k.save(); !errors.Is(err, errDisowned) {
		t.Errorf("keeper.json: %v", err)
	}
	if err := k.keep(func() error { return d.WriteExit(Exit{Nonce: "earlier"}) }); !errors.Is(err, errDisowned) {
		t.Errorf("exit.json: %v", err)
	}
	if now, err := d.ReadKeeper(); err != nil || now.Nonce != "next" {
		t.Errorf("keeper.json is of %q: %v", now.Nonce, err)
	}
	if now, err := d.ReadExit(); !errors.Is(err, ErrNoRecord) {
		t.Errorf("exit.json is of %q: %v", now.Nonce, err)
	}
	k.spec.Nonce, k.disowned = "next", false
	if err := k.save(); err != nil {
		t.Errorf("a keeper's own record: %v", err)
	}
}

// foreignNS is a ref of the same number in another pid namespace.
func foreignNS(r identity.Ref) identity.Ref {
	r.PIDNS = "1:1"
	return r
}

// What the reaper cannot tell is left as it is, and said by the exit code too.
func TestReapSaysThatItCannotTell(t *testing.T) {
	r, d := newTask(t)
	h := localHost(t)
	keeper := foreignNS(another(t, h, "hob", "keeper", d.SpecPath()))
	task := testTask()
	if err := errors.Join(r.Write(Run{Name: r.Name, ID: "feedface", Tasks: []string{d.Name}}), d.WriteTask(task),
		d.WriteKeeper(Keeper{Nonce: task.Nonce, Keeper: keeper, Command: &keeper})); err != nil {
		t.Fatal(err)
	}
	outs, err := (&Manager{Store: r.store, Host: h}).Reap(t.Context(), true, StopOptions{Reason: "owner"})
	if err != nil || len(outs) != 1 || outs[0].State != Unverified || !errors.Is(outs[0].Err, ErrUnverified) {
		t.Errorf("%+v, %v", outs, err)
	}
}

// A keeper that cannot be verified was not asked, and is not said to be stopping its task.
func TestAKeeperThatWasNotAskedStopsNothing(t *testing.T) {
	r, d := newTask(t)
	h := localHost(t)
	m := &Manager{Store: r.store, Host: h}
	if err := d.WriteKeeper(Keeper{Nonce: "n", Keeper: foreignNS(another(t, h, "hob"))}); err != nil {
		t.Fatal(err)
	}
	if out := m.stopOwn(r, d, StopOptions{Reason: "down"}); out.Err == nil || out.Did != "left as it is" || out.State == Stopping {
		t.Errorf("not verified: %+v", out)
	}
	if err := os.WriteFile(d.file("keeper.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := m.stopOwn(r, d, StopOptions{Reason: "down"}); out.Err == nil || out.Did != "left as it is" {
		t.Errorf("torn: %+v", out)
	}
}
