package tasks

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

const (
	paneBytes   = 64 << 10               // that wait for the pane
	panePiece   = 4 << 10                // that are written to it at once
	panePatient = 250 * time.Millisecond // that output waits for a pane that takes nothing
)

// pane is the terminal that the keeper was started in, as an output. Its queue
// is bounded. A pane that is merely slow slows the command down, as a terminal
// does; one that takes nothing for a while (a stopped tmux server) loses output
// instead, until it takes something again.
type pane struct {
	mu      sync.Mutex
	queue   []byte
	dropped int64
	stalled bool // waited in vain: wait no more until it takes something
	ended   bool // EIO: the terminal is gone
	closing bool
	filled  chan struct{} // something to write, or closing
	taken   chan struct{} // the pane took something
	idle    chan struct{} // closed when the writer has ended
}

func newPane(w io.Writer) *pane {
	p := &pane{filled: make(chan struct{}, 1), taken: make(chan struct{}, 1), idle: make(chan struct{})}
	go p.run(w)
	return p
}

// Write queues what fits. It never fails, and never waits for long.
func (p *pane) Write(b []byte) (int, error) {
	size := len(b)
	if b = b[p.add(b):]; len(b) == 0 {
		return size, nil
	}
	deadline := time.NewTimer(panePatient)
	defer deadline.Stop()
	for {
		if b = b[p.add(b):]; len(b) == 0 {
			return size, nil
		}
		select {
		case <-p.taken:
			deadline.Reset(panePatient)
		case <-deadline.C:
			p.mu.Lock()
			p.stalled = true
			p.mu.Unlock()
		}
	}
}

// add queues a part of b, or drops it all when nobody takes it.
func (p *pane) add(b []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch room := paneBytes - len(p.queue); {
	case p.ended || p.closing:
		return len(b)
	case room == 0 && p.stalled:
		p.dropped += int64(len(b))
		return len(b)
	default:
		n := min(room, len(b))
		p.queue = append(p.queue, b[:n]...)
		signalChan(p.filled)
		return n
	}
}

func signalChan(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (p *pane) run(w io.Writer) {
	defer close(p.idle)
	for range p.filled {
		for {
			b, closing := p.next()
			if len(b) == 0 {
				if closing {
					return
				}
				break
			}
			if err := p.show(w, b); err != nil {
				p.end()
				return
			}
		}
	}
}

// show writes in pieces, so that a slow pane is seen to take something.
func (p *pane) show(w io.Writer, b []byte) error {
	for piece := range slices.Chunk(b, panePiece) {
		if _, err := w.Write(piece); err != nil {
			return err
		}
		p.took()
	}
	return nil
}

func (p *pane) next() (b []byte, closing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, p.queue = p.queue, nil
	return b, p.closing
}

// took says, once the pane takes output again, how much it has missed.
func (p *pane) took() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = false
	if p.dropped > 0 {
		p.queue = fmt.Appendf(p.queue, "\r\n[hob: %d bytes are not shown here; the log has them]\r\n", p.dropped)
		p.dropped = 0
		signalChan(p.filled)
	}
	signalChan(p.taken)
}

// end is EIO: nothing is shown any more.
func (p *pane) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended, p.queue = true, nil
	signalChan(p.taken)
}

// close shows what is queued, unless the pane takes nothing for the patience.
func (p *pane) close() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	signalChan(p.filled)
	timer := time.NewTimer(panePatient)
	defer timer.Stop()
	for {
		select {
		case <-p.idle:
			return
		case <-p.taken:
			timer.Reset(panePatient)
		case <-timer.C:
			return
		}
	}
}
