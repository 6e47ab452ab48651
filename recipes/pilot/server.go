package pilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// server is the process that listens.
type server struct {
	options
	http    *http.Server
	ends    chan end // what asks it to end, or makes it
	engine  atomic.Pointer[engine]
	answers atomic.Int64 // given, for ids
}

// end is a reason to end.
type end struct {
	why   string
	code  int
	asked bool // by a signal or by the launcher: a second time cuts short
}

// serve is the whole life of a server. It returns its exit code.
func serve(o options) int {
	s := &server{options: o, ends: make(chan end, 8)}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	logf("pilot: shape %s, model %s, pid %d", o.Shape, o.Model, os.Getpid())
	if o.launched {
		go s.heedLauncher()
	}
	if !o.LateSignals {
		s.heedSignals()
	}
	if !o.LateListen {
		if err := s.listen(); err != nil {
			logf("%v", err)
			return 1
		}
	}
	e, reason := s.load()
	if reason == nil {
		reason = s.ready()
	}
	return s.shutDown(e, reason)
}

// load brings the model up, unless something ends the server first.
func (s *server) load() (*engine, *end) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	loading := inBackground(ctx, launch, s.options)
	select {
	case l := <-loading:
		if l.err != nil {
			return l.engine, &end{why: l.err.Error(), code: s.FailCode}
		}
		s.engine.Store(l.engine)
		return l.engine, nil
	case why := <-s.ends:
		cancel()
		l := <-loading
		if why.asked {
			why.code = s.TermLoadingCode
		}
		return l.engine, &why
	}
}

// ready serves until something ends the server.
func (s *server) ready() *end {
	if s.LateSignals {
		s.heedSignals()
	}
	if s.LateListen {
		if err := s.listen(); err != nil {
			return &end{why: err.Error(), code: 1}
		}
	}
	for _, line := range s.ReadyLines {
		logf("%s", line)
	}
	select {
	case why := <-s.ends:
		return &why
	case <-s.engine.Load().broken:
		return &end{why: "a process of the engine " + errGone.Error(), code: 1}
	}
}

// shutDown lets requests finish, ends the engine, and gives the exit code. Being
// asked once more cuts it short, or leaks the engine, as the shape says.
func (s *server) shutDown(e *engine, why *end) int {
	logf("shutting down: %s", why.why)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.drain()
		e.quit()
	}()
	for {
		select {
		case <-done:
			logf("shut down")
			return why.code
		case again := <-s.ends:
			logf("asked to end once more: %s", again.why)
			if s.LeakOnSecondTERM {
				return 1
			}
			_ = s.http.Close() // requests that are being drained end here
		}
	}
}

// drain stops listening and gives requests in hand their time.
func (s *server) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), s.Drain)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // listeners are closed already, and the rest had its time
	}
	<-time.After(s.ShutdownTime)
}

// listen opens the port and serves on it.
func (s *server) listen() error {
	if s.SilentPort {
		return nil
	}
	var config net.ListenConfig
	if s.ReusePort {
		config.Control = sharePort
	}
	address := net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("couldn't bind HTTP server socket: %w", err)
	}
	logf("listening on http://%s", l.Addr())
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.ends <- end{why: fmt.Sprintf("serve %s: %v", address, err), code: 1}
		}
	}()
	return nil
}

// heedSignals takes TERM and INT as requests to end.
func (s *server) heedSignals() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		for got := range signals {
			s.ends <- end{why: "signal: " + got.String(), code: s.TermCode, asked: true}
		}
	}()
}

// heedLauncher ends the server when its launcher says so, and takes a launcher
// that is gone as a reason too; where the shape outlives it, as late as an orphan's.
func (s *server) heedLauncher() {
	var m message
	if err := json.NewDecoder(os.Stdin).Decode(&m); err != nil && s.Outlive {
		hold(s.OrphanLimit)
	}
	s.ends <- end{why: "asked by the launcher", code: s.TermCode, asked: true}
}
