package examples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hob/identity/porttest"
)

// kitchen is a hob with a state folder and a tmux server of its own.
type kitchen struct {
	t    *testing.T
	root string // everything is in here; short, since a socket is
	env  []string
}

// newKitchen is an empty kitchen, cleaned up with the test.
func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "hob-ex")
	if err != nil {
		t.Fatal(err)
	}
	k := &kitchen{t: t, root: root}
	for _, dir := range []string{"run", "home", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	k.env = append(os.Environ(),
		"HOB_HOME="+root+"/state", "XDG_RUNTIME_DIR="+root+"/run", "TMPDIR="+root+"/tmp",
		"SHELL=/bin/sh", "PATH="+bin+":"+os.Getenv("PATH"))
	t.Cleanup(k.cleanUp)
	return k
}

// cleanUp stops what still runs, and fails the test for what outlives that.
func (k *kitchen) cleanUp() {
	if out, code := k.try("down", "--all", "--quiet"); code != 0 && k.leftovers() != nil {
		k.t.Errorf("hob down --all: exit code %d\n%s", code, out)
	}
	if !k.within(func() bool { return k.leftovers() == nil }) {
		k.t.Errorf("left behind: %v", k.leftovers())
		return
	}
	if err := os.RemoveAll(k.root); err != nil {
		k.t.Error(err)
	}
}

// leftovers are the processes that have this kitchen in their environment.
func (k *kitchen) leftovers() (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, _ := os.ReadFile(file) // those that end meanwhile are no leftovers
		if bytes.Contains(environ, []byte("HOB_HOME="+k.root)) {
			args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, filepath.Base(filepath.Dir(file))+" "+string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// within waits for a condition, and reports whether it came.
func (k *kitchen) within(ok func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

func (k *kitchen) until(what string, ok func() bool) {
	k.t.Helper()
	if !k.within(ok) {
		out, _ := k.try("ps")
		k.t.Fatalf("waited in vain for %s\n%s", what, out)
	}
}

// try runs hob and returns all its output and its exit code.
func (k *kitchen) try(args ...string) (string, int) {
	cmd := exec.Command(filepath.Join(bin, "hob"), args...)
	cmd.Env = k.env
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		k.t.Errorf("hob %v: %v", args, err)
		return "", -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// hob runs hob, which must succeed, and returns its standard output.
func (k *kitchen) hob(args ...string) string {
	k.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "hob"), args...)
	cmd.Env = k.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("hob %s: %v\n%s%s%s", strings.Join(args, " "), err, out, &stderr, k.logs())
	}
	return string(out)
}

// logs are the ends of all logs, to say more of a failure.
func (k *kitchen) logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(k.root + "/state/runs/*/tasks/*/log")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		fmt.Fprintf(&all, "--- %s\n%s", strings.TrimPrefix(file, k.root), text[max(0, len(text)-2000):])
	}
	return all.String()
}

// task is what these tests read of `hob ps --json`.
type task struct {
	Run   string  `json:"run"`
	Task  string  `json:"task"`
	Kind  string  `json:"kind"`
	State string  `json:"state"`
	PID   *int    `json:"pid"`
	URL   *string `json:"url"`
}

func (k *kitchen) ps() (list []task) {
	k.t.Helper()
	if out := k.hob("ps", "--json"); json.Unmarshal([]byte(out), &list) != nil {
		k.t.Fatalf("hob ps --json: %s", out)
	}
	return list
}

// task is one task; it must be there.
func (k *kitchen) task(name string) task {
	k.t.Helper()
	for _, t := range k.ps() {
		if t.Task == name {
			return t
		}
	}
	k.t.Fatalf("hob ps does not know %s", name)
	return task{}
}

// report is what these tests read of `hob report --json`.
type report struct {
	Task    string `json:"task"`
	Reason  string `json:"reason"`
	Verdict string `json:"verdict"`
	Members []struct {
		PID      int      `json:"pid"`
		Args     []string `json:"args"`
		Evidence []string `json:"evidence"`
		Signals  []string `json:"signals"`
		Fate     string   `json:"fate"`
	} `json:"members"`
	Lookalikes []struct {
		PID int      `json:"pid"`
		Why []string `json:"why"`
	} `json:"lookalikes"`
}

func (k *kitchen) reports(args ...string) (list []report) {
	k.t.Helper()
	out := k.hob(append([]string{"report", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		k.t.Fatalf("hob report --json: %v\n%s", err, out)
	}
	return list
}

// complete gets a chat completion from a server.
func (k *kitchen) complete(url, model, prompt string) string {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{"model": model, "messages": []any{map[string]any{"role": "user", "content": prompt}}})
	if err != nil {
		k.t.Fatal(err)
	}
	client := http.Client{Timeout: patience}
	response, err := client.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		k.t.Fatalf("%v\n%s", err, k.logs())
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if json.Unmarshal(text, &answer) != nil || len(answer.Choices) != 1 {
		k.t.Fatalf("%s: %s", response.Status, text)
	}
	return strings.TrimSpace(answer.Choices[0].Message.Content)
}

// answers reports whether something answers at url.
func (k *kitchen) answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}
