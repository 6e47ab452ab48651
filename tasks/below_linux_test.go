package tasks

import (
	"errors"
	"os"
	"testing"

	"hob/identity"
)

func TestPlaced(t *testing.T) {
	for _, c := range []struct {
		keeper identity.Verdict
		number position
		want   position
	}{
		{identity.Owned, below, below},
		{identity.Owned, elsewhere, elsewhere},
		{identity.Owned, unplaced, unplaced},
		{identity.Unverifiable, below, unplaced},
		{identity.Unverifiable, elsewhere, elsewhere},
		{identity.Unverifiable, unplaced, unplaced},
	} {
		if got := placed(c.keeper, c.number); got != c.want {
			t.Errorf("keeper %s, number %d: %d, want %d", c.keeper, c.number, got, c.want)
		}
	}
}

// dim is a host on which some looks fail.
type dim struct {
	identity.Host
	noRows, noKids bool
}

var errDim = errors.New("too dark to see")

func (d dim) Open(pid int) (identity.Handle, error) {
	if d.noRows {
		return nil, errDim
	}
	return d.Host.Open(pid)
}

func (d dim) Children(pid int) ([]int, error) {
	if d.noKids {
		return nil, errDim
	}
	return d.Host.Children(pid)
}

// Where an ancestor hides its row the keeper's tree is looked through; where that
// cannot be read either, nobody can tell, and that is not "elsewhere".
func TestPosition(t *testing.T) {
	_, d := newTask(t)
	h := localHost(t)
	parent, err := h.Open(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	stranger := another(t, h, "hob", "keeper", d.SpecPath())
	for name, c := range map[string]struct {
		keeper identity.Ref
		host   dim
		want   position
	}{
		"the parent":                       {parent.Ref(), dim{Host: h}, below},
		"another":                          {stranger, dim{Host: h}, elsewhere},
		"the parent, rows hidden":          {parent.Ref(), dim{Host: h, noRows: true}, below},
		"another, rows hidden":             {stranger, dim{Host: h, noRows: true}, elsewhere},
		"the parent, nothing to be seen":   {parent.Ref(), dim{Host: h, noRows: true, noKids: true}, unplaced},
		"another, nothing to be seen":      {stranger, dim{Host: h, noRows: true, noKids: true}, unplaced},
		"another, its tree not to be seen": {stranger, dim{Host: h, noKids: true}, elsewhere},
	} {
		if err := d.WriteKeeper(Keeper{Nonce: "n", Keeper: c.keeper}); err != nil {
			t.Fatal(err)
		}
		if got := (&Manager{Host: c.host}).position(d); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if err := os.WriteFile(d.file("keeper.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (&Manager{Host: h}).position(d); got != unplaced {
		t.Errorf("a torn keeper.json: %d", got)
	}
}

// A hob that cannot tell whether it runs below the keeper has the keeper stop the
// task, as if it did: it might else end itself in the middle.
func TestUnplacedAsksTheKeeper(t *testing.T) {
	r, d := newTask(t)
	h := localHost(t)
	keeper := another(t, h, "hob", "keeper", d.SpecPath())
	task := testTask()
	task.State, task.Nonce = Up, "n"
	if err := errors.Join(r.Write(Run{Name: r.Name, ID: "feedface", Tasks: []string{d.Name}}), d.WriteTask(task),
		d.WriteKeeper(Keeper{Nonce: "n", Keeper: keeper})); err != nil {
		t.Fatal(err)
	}
	m := &Manager{Store: r.store, Host: dim{Host: h, noRows: true, noKids: true}}
	outs := m.stopTasks(t.Context(), Selection{Run: r, Tasks: []string{d.Name}}, StopOptions{Reason: "down"})
	if len(outs) != 1 || outs[0].Err != nil || outs[0].Did != "is stopped by its own keeper" {
		t.Errorf("%+v", outs)
	}
	if stop, err := d.ReadStop(); err != nil || stop.Nonce != "n" || stop.Reason != "down" {
		t.Errorf("the keeper is asked for %+v, %v", stop, err)
	}
	if now, err := d.ReadTask(); err != nil || now.State != Up {
		t.Errorf("the task is written %s by hob itself: %v", now.State, err)
	}
	pin, _ := h.Verify(keeper)
	if pin != nil {
		defer pin.Close()
		if err := h.Wait(t.Context(), []identity.Handle{pin}, h.Now().Add(patience)); err != nil || pin.Verify().Verdict == identity.Owned {
			t.Errorf("the keeper was not told: %v", err)
		}
	}
}
