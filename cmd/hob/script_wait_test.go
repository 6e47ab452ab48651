//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// waitlog NAME TEXT waits until a task has written something.
func waitLog(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[0], "/")
	path := manager(ts).Store.Run(run).Task(task).LogPath()
	eventually(ts, strconv.Quote(args[1])+" in the log of "+args[0], func() (bool, string) {
		data, _ := os.ReadFile(path)
		return strings.Contains(string(data), args[1]), strconv.Quote(string(data))
	})
}

// waitline NAME TEXT waits until the keeper has written that its task said so last.
func waitLine(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[0], "/")
	dir := manager(ts).Store.Run(run).Task(task)
	eventually(ts, strconv.Quote(args[1])+" as the last line of "+args[0], func() (bool, string) {
		k, err := dir.ReadKeeper()
		return strings.Contains(k.LastLine, args[1]), fmt.Sprint(strconv.Quote(k.LastLine), " ", err)
	})
}

// waitport PORT waits until somebody listens, or with ! until nobody does.
func waitPort(ts *testscript.TestScript, neg bool, args []string) {
	eventually(ts, fmt.Sprintf("a listener on %s (%t)", args[0], !neg), func() (bool, string) {
		c, err := net.Dial("tcp", "127.0.0.1:"+args[0])
		if err == nil {
			c.Close()
		}
		return (err == nil) == !neg, fmt.Sprint(err)
	})
}

// report NAME REASON waits for a report of a task.
func waitReport(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[0], "/")
	eventually(ts, "a report of "+args[0], func() (bool, string) {
		r, err := manager(ts).Store.Run(run).Task(task).ReadReport()
		return err == nil && r.Reason == args[1], fmt.Sprint(r.Reason, " ", err)
	})
}

// recorded RUN/TASK STATE waits until task.json says so. The state that hob shows is
// ahead of it while a keeper still sees to what its command left behind, and writes
// that file once more.
func waitRecorded(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[0], "/")
	eventually(ts, args[0]+" to be recorded as "+args[1], func() (bool, string) {
		t, err := manager(ts).Store.Run(run).Task(task).ReadTask()
		return err == nil && string(t.State) == args[1], fmt.Sprint(t.State, " ", err)
	})
}

func waitFile(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, args[0], func() (bool, string) {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil, fmt.Sprint(err)
	})
}

// waitsaid FILE REGEXP waits until a line of a file is as the expression says.
func waitSaid(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	eventually(ts, strconv.Quote(args[1])+" in "+args[0], func() (bool, string) {
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		return want.Match(text), string(text)
	})
}

// waitsocket waits until the script's tmux server listens, which somebody has made
// bind its socket anew.
func waitSocket(ts *testscript.TestScript, _ bool, _ []string) {
	eventually(ts, "the tmux server to listen", func() (bool, string) { return listens(ts.Getenv("SHORT")), "nobody listens" })
}

// attached SESSION WINDOW waits until a terminal shows that window.
func attached(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "a client in "+strings.Join(args, ":"), func() (bool, string) {
		out, err := exec.Command("tmux", "-S", socketOf(ts), "list-clients", "-F", "#{session_name} #{window_name}").CombinedOutput()
		return strings.TrimSpace(string(out)) == strings.Join(args, " "), fmt.Sprint(string(out), err)
	})
}

// attachedto SOCKET SESSION WINDOW is attached for a tmux server of a person's.
func attachedTo(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "a client in "+strings.Join(args[1:], ":"), func() (bool, string) {
		out, err := exec.Command("tmux", "-S", args[0], "list-clients", "-F", "#{session_name} #{window_name}").CombinedOutput()
		return strings.TrimSpace(string(out)) == strings.Join(args[1:], " "), fmt.Sprint(string(out), err)
	})
}

// waitnote NAME TEXT waits until a task's note has a text.
func waitNote(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, strconv.Quote(args[1])+" in the note of "+args[0], func() (bool, string) {
		s, err := status(ts, args[0])
		return strings.Contains(s.Note, args[1]), fmt.Sprint(s.State, " ", s.Note, " ", err)
	})
}
