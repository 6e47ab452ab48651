package pilot

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is a core or a worker, as it sees itself.
type child struct {
	title  string
	setup  setup
	parent wire
	in     *json.Decoder
}

// newChild takes the title and the setup, which is the first message.
func newChild(title string) (*child, error) {
	c := &child{
		title:  strings.Clone(title), // the original stands in the memory that retitle overwrites
		parent: wire{w: os.Stdout},
		in:     json.NewDecoder(os.Stdin),
	}
	signal.Ignore(syscall.SIGPIPE) // a write to a parent that is gone must not end those that outlive it
	var m message
	if err := c.in.Decode(&m); err != nil {
		return nil, fmt.Errorf("%s is started by hob pilot serve only: no setup on standard input: %w", title, err)
	}
	if m.Setup == nil {
		return nil, fmt.Errorf("%s is started by hob pilot serve only: the first message is no setup", title)
	}
	c.setup = *m.Setup
	o := c.setup.Options
	if o.IgnoreHUP {
		signal.Ignore(syscall.SIGHUP)
	}
	if o.IgnoreTERM {
		signal.Ignore(syscall.SIGTERM)
	}
	if o.Retitle {
		retitle(c.title, os.Getenv("SPT_NOENV") == "")
	}
	return c, nil
}

// ballast is the memory that a worker was told to hold.
var ballast []byte

// runWorker holds a part of the table until it is asked to end.
func runWorker(title string) error {
	c, err := newChild(title)
	if err != nil {
		return err
	}
	c.fill()
	part, err := c.part()
	if err != nil {
		_ = c.parent.send(message{Op: opFailed, Text: err.Error()}) // who passes it on; our exit code says it too
		return &exitError{code: 1}
	}
	_ = c.parent.send(message{Op: opLoaded}) // the next read tells if it is gone, also to one that outlives it
	if o := c.setup.Options; !c.answer(part) && o.Outlive {
		hold(o.OrphanLimit)
	}
	return nil
}

// fill takes the memory that a worker was told to hold.
func (c *child) fill() {
	ballast = make([]byte, c.setup.Options.Memory)
	for i := 0; i < len(ballast); i += os.Getpagesize() {
		ballast[i] = 1 // memory that is never touched is not held
	}
}

// part is what of the model this worker holds.
func (c *child) part() (table, error) {
	if c.setup.Extra {
		return nil, nil
	}
	model, err := learn(c.setup.Options.Text)
	return model.share(c.setup.Rank, c.setup.Options.Workers), err
}

// answer looks up tokens until the parent says quit, or is gone; asked reports which.
func (c *child) answer(part table) (asked bool) {
	for {
		var m message
		if c.in.Decode(&m) != nil {
			return false
		}
		switch m.Op {
		case opQuit:
			return true
		case opNext:
			token, found := part[m.Key]
			_ = c.parent.send(message{ID: m.ID, Op: opToken, Token: token, Found: found}) // the next read tells if it is gone
		}
	}
}

// hold is what an orphan does: it lives, with all that it holds. The limit is
// for rehearsals that nobody cleans up after.
func hold(limit time.Duration) {
	<-time.After(limit)
}

// runCore continues prompts with workers of its own until it is asked to end,
// or until one of them is gone.
func runCore(title string) error {
	c, err := newChild(title)
	if err != nil {
		return err
	}
	if c.setup.Options.Worker == "" { // it works itself
		c.fill()
	}
	inbox := c.inbox()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	loading := inBackground(ctx, load, c.setup.Options)
	select {
	case l := <-loading:
		return c.serve(l.engine, l.err, inbox)
	case m := <-inbox: // nothing is asked of a core that loads, but to end
		cancel()
		if l := <-loading; m.Op == opQuit {
			l.engine.quit()
		} else {
			c.orphaned()
		}
		return nil // the workers see end of file without having been asked
	}
}

// serve answers what comes in once loading has ended, well or with failed.
func (c *child) serve(e *engine, failed error, inbox <-chan message) error {
	if failed != nil {
		_ = c.parent.send(message{Op: opFailed, Text: failed.Error()}) // who prints it; our exit code says it too
		e.quit()
		return &exitError{code: 1}
	}
	if err := c.parent.send(message{Op: opLoaded}); err != nil {
		return err
	}
	asked := make(chan bool, 1)
	go func() { asked <- c.converse(e.generator, inbox) }()
	select {
	case quit := <-asked:
		if quit {
			e.quit()
		} else {
			c.orphaned()
		}
		return nil
	case <-e.broken:
		logf("%s: a worker %v", c.title, errGone)
		e.quit()
		return &exitError{code: 1}
	}
}

// orphaned is what a core does whose server is gone: one that works itself holds
// what a worker would.
func (c *child) orphaned() {
	if o := c.setup.Options; o.Outlive && o.Worker == "" {
		hold(o.OrphanLimit)
	}
}

// inbox is what the parent says; it is closed when the parent is gone.
func (c *child) inbox() <-chan message {
	inbox := make(chan message)
	go func() {
		defer close(inbox)
		for {
			var m message
			if c.in.Decode(&m) != nil {
				return
			}
			inbox <- m
		}
	}()
	return inbox
}

// converse answers requests until the parent says quit, or is gone.
func (c *child) converse(g generator, inbox <-chan message) (asked bool) {
	ctx, cancelAll := context.WithCancel(context.Background())
	defer cancelAll()
	var cancels sync.Map // of the requests in hand, by id
	for m := range inbox {
		switch m.Op {
		case opQuit:
			return true
		case opCancel:
			if cancel, ok := cancels.LoadAndDelete(m.ID); ok {
				cancel.(context.CancelFunc)()
			}
		case opGenerate:
			ctx, cancel := context.WithCancel(ctx)
			cancels.Store(m.ID, cancel)
			go func() {
				defer cancel()
				defer cancels.Delete(m.ID)
				c.generate(ctx, g, m)
			}()
		}
	}
	return false
}

// generate answers one request. What cannot be sent has nobody who waits for it.
func (c *child) generate(ctx context.Context, g generator, m message) {
	reason, err := g.generate(ctx, m.Words, m.Limit, func(token string) {
		_ = c.parent.send(message{ID: m.ID, Op: opToken, Token: token})
	})
	end := message{ID: m.ID, Op: opEnd, Text: reason}
	if err != nil {
		end = message{ID: m.ID, Op: opFailed, Text: err.Error()}
	}
	_ = c.parent.send(end)
}

// logf prints a line of the server's log.
func logf(format string, args ...any) { fmt.Fprintf(logTo, format+"\n", args...) }

var logTo io.Writer = os.Stderr
