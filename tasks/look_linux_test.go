package tasks

import (
	"context"
	"errors"
	"testing"

	"hob/identity"
	"hob/sweep"
)

// crowdedHost does something before the table of processes is read.
type crowdedHost struct {
	identity.Host
	do func() error
}

func (h crowdedHost) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	if err := h.do(); err != nil {
		return nil, err
	}
	return h.Host.Snapshot(ctx, want)
}

// A keeper that is found by its arguments while a record is not there may be that of a
// start that was made since the records were read: then nothing is missing. Where the
// record of the task says what it said, or is not there either, it is.
func TestMissingWhileTheKeeperIsLookedFor(t *testing.T) {
	task := Task{Run: "chat", Task: "llm", Nonce: "n", Kind: sweep.Server, State: Up}
	for name, c := range map[string]struct {
		before, meanwhile *Task
		missing           bool
	}{
		"keeper.json is gone":            {before: &task, missing: true},
		"task.json is gone":              {missing: true},
		"another start":                  {before: &task, meanwhile: &Task{Run: "chat", Task: "llm", Nonce: "m", Kind: sweep.Server, State: Up}},
		"the same start, being stopped":  {before: &task, meanwhile: &Task{Run: "chat", Task: "llm", Nonce: "n", Kind: sweep.Server, State: Stopping}},
		"a first start":                  {meanwhile: &task},
		"it was written as it had stood": {before: &task, meanwhile: &task, missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := newTask(t)
			write := func(task *Task) error {
				if task == nil {
					return nil
				}
				return d.WriteTask(*task)
			}
			if err := errors.Join(d.WriteSpec(Spec{Run: "chat", Task: "llm", Nonce: "n"}), write(c.before)); err != nil {
				t.Fatal(err)
			}
			local := localHost(t)
			another(t, local, "hob", "keeper", d.SpecPath())
			m := &Manager{Host: crowdedHost{local, func() error { return write(c.meanwhile) }}}
			s := m.lookOnce(d)
			var record *RecordError
			if got := errors.As(s.Trouble, &record) && record.Kind == Missing; got != c.missing || s.Trouble != nil && !got {
				t.Errorf("missing is %t: %v", got, s.Trouble)
			}
		})
	}
}
