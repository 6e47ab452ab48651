//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// helper is the program that scripts run in panes: `helper WORD ARG…`.
func helper() {
	if len(os.Args) < 2 {
		fatal("helper: say what")
	}
	word, args := os.Args[1], os.Args[2:]
	switch word {
	case "sleep": // until a signal ends it
		forever()
	case "deaf": // to everything but KILL
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		say("deaf")
		forever()
	case "exit":
		os.Exit(atoi(args[0]))
	case "lines": // N numbered lines once FILE exists, then exit CODE
		until(func() bool { _, err := os.Stat(args[2]); return err == nil })
		for i := range atoi(args[0]) {
			fmt.Println("line", i+1)
		}
		os.Exit(atoi(args[1]))
	case "count": // the bytes of each argument
		for _, a := range args {
			fmt.Println(len(a))
		}
		forever()
	case "wait":
		say("waiting")
		forever()
	case "load": // answers 503 until FILE exists
		load(args)
	case "serve":
		serve(args)
	case "api":
		api(args[0], args[1])
	case "flaky": // fails until it has been called N times, as FILE counts
		flaky(args[0], atoi(args[1]))
	case "loads": // shows progress, then listens on PORT
		for i := range 10 {
			fmt.Printf("Loading shards: %d%% Completed | %d/9\n", i*11, i)
		}
		until(func() bool { _, err := os.Stat(args[1]); return err == nil })
		serve(args[:1])
	case "fork":
		fork(args)
	case "daemon": // the middle of a double fork
		start(&syscall.SysProcAttr{Setsid: true}, args...)
	case "args":
		for _, a := range args {
			fmt.Printf("%q\n", a)
		}
		forever()
	case "env":
		for _, name := range args {
			fmt.Printf("%s=%s\n", name, os.Getenv(name))
		}
		forever()
	case "when": // exit CODE once FILE exists, with a last word
		until(func() bool { _, err := os.Stat(args[0]); return err == nil })
		fmt.Println(strings.Join(args[2:], " "))
		os.Exit(atoi(args[1]))
	default:
		fatal("helper: what is %q?", word)
	}
}

func say(words ...any) { fmt.Println(words...) }

func fatal(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(99)
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		fatal("helper: %v", err)
	}
	return n
}

func forever() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR2) // keeps the runtime from calling it a deadlock
	<-never
}

// until polls, for what no event tells.
func until(done func() bool) {
	for !done() {
		time.Sleep(5 * time.Millisecond)
	}
}

// start runs this helper again, as a process that is not waited for.
func start(attr *syscall.SysProcAttr, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		fatal("helper: %v", err)
	}
	c := exec.Command(self, args...)
	c.Args[0] = "helper"
	c.SysProcAttr = attr
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		fatal("helper: %v", err)
	}
	return c
}

// fork starts a child in a way of its own, then waits for ever, or with
// "leave FILE" ends with 7 once the file is there.
func fork(args []string) {
	switch args[0] {
	case "child":
		start(nil, "deaf")
	case "setsid":
		start(&syscall.SysProcAttr{Setsid: true}, "deaf")
	case "daemon":
		if err := start(nil, "daemon", "deaf").Wait(); err != nil {
			fatal("helper: %v", err)
		}
	default:
		fatal("helper: fork how? %q", args[0])
	}
	say("forked")
	if len(args) > 1 { // "leave" once FILE exists
		until(func() bool { _, err := os.Stat(args[2]); return err == nil })
		os.Exit(7)
	}
	forever()
}

// asksForToken answers a completion to who has the header X-Token as $TOKEN says, and
// repeats to others what they have.
func asksForToken(w http.ResponseWriter, r *http.Request) {
	if got := r.Header.Get("X-Token"); got != os.Getenv("TOKEN") {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "no token, but %q", got)
		return
	}
	fmt.Fprintln(w, `{"choices": [{"text": " there"}]}`)
}

// api answers like servers do that are loading until the file exists: /health in
// JSON, /auth with 401, /token and completions to who has the token.
func api(port, file string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fatal("helper: %v", err)
	}
	http.HandleFunc("/auth", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	http.HandleFunc("/v1/completions", asksForToken)
	http.HandleFunc("/token", asksForToken)
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(file); err != nil {
			fmt.Fprintln(w, `{"status": "loading", "models": []}`)
			return
		}
		fmt.Fprintln(w, `{"status": "ok", "models": ["tiny"]}`)
	})
	fatal("helper: %v", http.Serve(l, nil))
}

func flaky(file string, n int) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		fatal("helper: %v", err)
	}
	fmt.Fprint(f, "x")
	info, err := f.Stat()
	if err != nil {
		fatal("helper: %v", err)
	}
	say("attempt", info.Size())
	if info.Size() < int64(n) {
		os.Exit(1)
	}
}

// serve answers /health on a loopback port, at once or once the file exists.
func serve(args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	if err != nil {
		fatal("helper: %v", err)
	}
	say("listening on", l.Addr())
	if len(args) > 1 {
		until(func() bool { _, err := os.Stat(args[1]); return err == nil })
	}
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	fatal("helper: %v", http.Serve(l, nil))
}

// load listens at once, as engines do, and is not well before the file exists.
func load(args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	if err != nil {
		fatal("helper: %v", err)
	}
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(args[1]); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	fatal("helper: %v", http.Serve(l, nil))
}
