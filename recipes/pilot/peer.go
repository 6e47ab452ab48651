package pilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// message is what parent and child say to each other over the child's standard
// input and output, one JSON object a line. ID 0 is not about a request.
type message struct {
	ID    uint64   `json:"id,omitempty"`
	Op    op       `json:"op"`
	Setup *setup   `json:"setup,omitempty"` // of opStart
	Key   string   `json:"key,omitempty"`   // of opNext
	Token string   `json:"token,omitempty"` // of opToken
	Words []string `json:"words,omitempty"` // of opGenerate: the prompt
	Limit int      `json:"limit,omitempty"` // of opGenerate
	Text  string   `json:"text,omitempty"`  // of opEnd: the reason; of opFailed: what failed
	Found bool     `json:"found,omitempty"` // of opToken in answer to opNext
}

type op string

// What a parent says.
const (
	opStart    op = "start"    // who you are; the first message
	opGenerate op = "generate" // to a core: continue a prompt
	opCancel   op = "cancel"   // to a core: nobody waits for request ID any more
	opNext     op = "next"     // to a worker: which token follows a context
	opQuit     op = "quit"     // end now. End of file without it means that the parent is gone.
)

// What a child says.
const (
	opLoaded op = "loaded"
	opFailed op = "failed"
	opToken  op = "token"
	opEnd    op = "end"
)

// setup is what a child is told when it starts.
type setup struct {
	Options options
	Rank    int  // of a worker
	Extra   bool // only belongs to the tree
}

// wire writes messages of several goroutines to one pipe.
type wire struct {
	mu sync.Mutex
	w  io.WriteCloser
}

func (w *wire) send(m message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return json.NewEncoder(w.w).Encode(m)
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.w.Close() // the other end sees end of file whatever Close says
}

// errGone means that a child has ended.
var errGone = errors.New("has ended")

// peer is a child process, as its parent sees it.
type peer struct {
	title string
	wire  *wire
	first chan message  // opLoaded or opFailed
	gone  chan struct{} // closed when it has ended and is reaped

	mu    sync.Mutex
	last  uint64
	calls map[uint64]call
}

// call is a request that a peer has not finished to answer.
type call struct {
	ctx     context.Context
	replies chan message
}

// start runs this program again as role ("core" or "worker").
func start(role, title string, s setup) (*peer, error) {
	cmd, err := again(role, "--title", title)
	if err != nil {
		return nil, err
	}
	if s.Options.DetachWorkers && role == "worker" {
		cmd.SysProcAttr = ownSession()
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", title, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", title, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", title, err)
	}
	p := &peer{
		title: title, wire: &wire{w: in}, first: make(chan message, 1),
		gone: make(chan struct{}), calls: map[uint64]call{},
	}
	go p.read(out, cmd)
	return p, p.wire.send(message{Op: opStart, Setup: &s})
}

// ownArgv0 is how this program was called: test programs are told apart by it.
// A copy, since retitle overwrites the original.
var ownArgv0 = strings.Clone(os.Args[0])

// again is this program as `hob pilot ARGS…`, with our standard error.
func again(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return &exec.Cmd{Path: self, Args: append([]string{ownArgv0, "pilot"}, args...), Stderr: os.Stderr}, nil
}

// read hands out what the child says, until it has ended.
func (p *peer) read(out io.Reader, cmd *exec.Cmd) {
	defer close(p.gone)
	defer func() { _ = cmd.Wait() }() // that it ended is all that matters here
	for decoder := json.NewDecoder(out); ; {
		var m message
		if decoder.Decode(&m) != nil {
			return
		}
		if m.ID != 0 {
			p.deliver(m)
			continue
		}
		p.first <- m
	}
}

func (p *peer) deliver(m message) {
	p.mu.Lock()
	c, ok := p.calls[m.ID]
	p.mu.Unlock()
	if !ok {
		return
	}
	select {
	case c.replies <- m:
	case <-c.ctx.Done():
	}
}

// loaded waits until the child has said that it is.
func (p *peer) loaded(ctx context.Context) error {
	select {
	case m := <-p.first:
		if m.Op == opFailed {
			return errors.New(m.Text)
		}
		return nil
	case <-p.gone:
		return fmt.Errorf("%s %w", p.title, errGone)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask sends a request and calls reply with each answer until it says that it was the last.
func (p *peer) ask(ctx context.Context, m message, reply func(message) (last bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := call{ctx, make(chan message)}
	p.mu.Lock()
	p.last++
	m.ID = p.last
	p.calls[m.ID] = c
	p.mu.Unlock()
	defer p.forget(m.ID)
	if err := p.wire.send(m); err != nil {
		return fmt.Errorf("%s %w: %w", p.title, errGone, err)
	}
	for {
		select {
		case r := <-c.replies:
			if reply(r) {
				return nil
			}
		case <-p.gone:
			return fmt.Errorf("%s %w", p.title, errGone)
		case <-ctx.Done():
			_ = p.wire.send(message{ID: m.ID, Op: opCancel}) // if it is gone there is nothing to cancel
			return ctx.Err()
		}
	}
}

func (p *peer) forget(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

// quit asks the child to end and closes its standard input.
func (p *peer) quit() {
	_ = p.wire.send(message{Op: opQuit}) // a child that is gone already has nothing to be told
	p.wire.close()
}

// next makes a worker a holder of its part of the table.
func (p *peer) next(ctx context.Context, key string) (token string, ok bool, err error) {
	err = p.ask(ctx, message{Op: opNext, Key: key}, func(m message) bool {
		token, ok = m.Token, m.Found
		return true
	})
	return token, ok, err
}

// generate makes a core process a generator.
func (p *peer) generate(ctx context.Context, prompt []string, limit int, emit func(string)) (reason string, err error) {
	var failed string
	err = p.ask(ctx, message{Op: opGenerate, Words: prompt, Limit: limit}, func(m message) bool {
		switch m.Op {
		case opToken:
			emit(m.Token)
			return false
		case opFailed:
			failed = m.Text
		}
		reason = m.Text
		return true
	})
	if err == nil && failed != "" {
		err = errors.New(failed)
	}
	return reason, err
}
