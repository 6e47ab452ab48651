package pilot

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// engine is the loaded model: who continues prompts, and the processes behind it.
type engine struct {
	generator
	peers  []*peer
	broken chan struct{} // closed when a process of it has ended that nobody asked to end
}

// outcome is what loading came to. The engine is to be quit even where it failed.
type outcome struct {
	engine *engine
	err    error
}

// inBackground brings up an engine while its caller listens to something else.
func inBackground(ctx context.Context, bring func(context.Context, options) (*engine, error), o options) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		e, err := bring(ctx, o)
		done <- outcome{e, err}
	}()
	return done
}

// launch brings up the model as the server needs it: behind a core process, or in this one.
func launch(ctx context.Context, o options) (*engine, error) {
	if o.Core == "" {
		return load(ctx, o)
	}
	e := &engine{broken: make(chan struct{})}
	p, err := e.start("core", o.Core, setup{Options: o})
	if err != nil {
		return e, err
	}
	e.generator = p
	return e, e.loaded(ctx)
}

// load brings up the model and its workers below this process.
func load(ctx context.Context, o options) (*engine, error) {
	e := &engine{broken: make(chan struct{})}
	parts, err := e.workers(o)
	if err != nil {
		return e, err
	}
	e.generator = core{parts}
	if err := progress(ctx, o, max(3, o.Workers)); err != nil {
		return e, err
	}
	return e, e.loaded(ctx)
}

// workers starts the workers and what else belongs to the tree.
func (e *engine) workers(o options) ([]partHolder, error) {
	for _, title := range o.Extra {
		if _, err := e.start("worker", title, setup{Options: o, Extra: true}); err != nil {
			return nil, err
		}
	}
	if o.Worker == "" {
		model, err := learn(o.Text)
		return []partHolder{model}, err
	}
	var parts []partHolder
	for rank := range o.Workers {
		p, err := e.start("worker", rankedTitle(o.Worker, rank), setup{Options: o, Rank: rank})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func rankedTitle(format string, rank int) string {
	return strings.ReplaceAll(format, "%d", fmt.Sprint(rank))
}

// start adds a process and watches it.
func (e *engine) start(role, title string, s setup) (*peer, error) {
	p, err := start(role, title, s)
	if p != nil {
		e.peers = append(e.peers, p)
	}
	return p, err
}

// loaded waits for every process to say that it is, and watches them from then on.
func (e *engine) loaded(ctx context.Context) error {
	for _, p := range e.peers {
		if err := p.loaded(ctx); err != nil {
			return err
		}
	}
	go e.watch()
	return nil
}

// watch closes broken at the first process that ends.
func (e *engine) watch() {
	ended := make(chan struct{}, len(e.peers))
	for _, p := range e.peers {
		go func() {
			<-p.gone
			ended <- struct{}{}
		}()
	}
	if len(e.peers) > 0 {
		<-ended
		close(e.broken)
	}
}

// quitLimit is how long quit waits for a process that was asked to end.
const quitLimit = 5 * time.Second

// quit asks every process to end and waits until they have.
func (e *engine) quit() {
	for _, p := range e.peers {
		p.quit()
	}
	limit := time.After(quitLimit)
	for _, p := range e.peers {
		select {
		case <-p.gone:
		case <-limit:
			return
		}
	}
}

// progress takes as long as loading is said to take, shard by shard, and fails half-way where it is to fail.
func progress(ctx context.Context, o options, shards int) error {
	for shard := 1; shard <= shards; shard++ {
		select {
		case <-time.After(o.LoadTime / time.Duration(shards)):
		case <-ctx.Done():
			return ctx.Err()
		}
		logf("loading shards: %d%% (%d/%d)", 100*shard/shards, shard, shards)
		if o.Fail != "" && shard >= shards/2 {
			return fmt.Errorf("%s", o.Fail)
		}
	}
	return nil
}
