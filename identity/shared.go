package identity

import (
	"context"
	"sync"
)

// Shared is h for several that look at the same time: a Snapshot that is asked for
// while another is being taken waits for the next one, and shares it with all who
// wait. So each sees the host as it was after it asked, and n of them cost two or
// three looks instead of n. Who gets a Table must not change it.
func Shared(h Host) Host {
	if s, ok := h.(*shared); ok {
		return s
	}
	return &shared{Host: h, looks: map[Field]*looks{}}
}

type shared struct {
	Host
	mu    sync.Mutex
	looks map[Field]*looks
}

// looks are those for the same fields.
type looks struct {
	busy bool
	next *sharedLook // nil when nobody waits
}

// sharedLook is one Snapshot, taken once it is done.
type sharedLook struct {
	done  chan struct{}
	table *Table
	err   error
}

// Snapshot is a look that begins after the call.
func (s *shared) Snapshot(ctx context.Context, want Field) (*Table, error) {
	look := s.join(want)
	select {
	case <-look.done:
		return look.table, look.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join is the next look. It is begun where none is under way. No caller's end is
// that of a look which others wait for.
func (s *shared) join(want Field) *sharedLook {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.looks[want]
	if l == nil {
		l = &looks{}
		s.looks[want] = l
	}
	if l.next == nil {
		l.next = &sharedLook{done: make(chan struct{})}
	}
	look := l.next
	if !l.busy {
		l.busy = true
		go s.work(l, want)
	}
	return look
}

// work looks until nobody waits for it.
func (s *shared) work(l *looks, want Field) {
	for look := s.take(l); look != nil; look = s.take(l) {
		look.table, look.err = s.Host.Snapshot(context.Background(), want)
		close(look.done)
	}
}

// take is the look that is to begin now: who asks from here on gets the next.
func (s *shared) take(l *looks) *sharedLook {
	s.mu.Lock()
	defer s.mu.Unlock()
	look := l.next
	l.next, l.busy = nil, look != nil
	return look
}
