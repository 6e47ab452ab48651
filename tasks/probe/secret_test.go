//go:build linux

package probe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"hob/identity"
)

// A server that asks for a key gets it; what it says of a wrong one is not told on.
func TestKey(t *testing.T) {
	text := `{"choices":[{"text":" there"}]}`
	s := start(t, serverConfig{Key: "s3cret", Routes: map[string]string{"/v1/completions": text, "/v1/models": `{"data":[{"id":"a"}]}`}}, nil)
	ready(t, once(t, Check{Port: s.port, Completion: true, Key: "s3cret"}, s.subject(t), ""))
	ready(t, once(t, Check{Port: s.port, HTTP: "/v1/models", Key: "s3cret"}, s.subject(t), ""))
	notReady(t, once(t, Check{Port: s.port, Completion: true}, s.subject(t), ""), "401 Unauthorized: it asks for a key, and hob has none")
	notReady(t, once(t, Check{Port: s.port, HTTP: "/v1/models"}, s.subject(t), ""), "401 Unauthorized: it asks for a key")
	ready(t, once(t, Check{Port: s.port, HTTP: "/v1/models", Expect: Expect{Status: 401}}, s.subject(t), ""))
	for _, c := range []Check{{Completion: true}, {HTTP: "/v1/models"}, {HTTP: "/v1/models", Expect: Expect{Status: 200}}} {
		c.Port, c.Key = s.port, "wr0ng"
		r := once(t, c, s.subject(t), "")
		notReady(t, r, "401 Unauthorized")
		if strings.Contains(r.Reason, "wr0ng") {
			t.Errorf("the key is told: %s", r.Reason)
		}
	}
	other := start(t, serverConfig{Key: "s3cret", Routes: map[string]string{"/v1/models": "{}"}}, nil)
	both := Subject{Command: s.pid, Tree: []int{s.pid, other.pid}}
	notReady(t, once(t, Check{Port: s.port, HTTP: fmt.Sprintf("http://127.0.0.1:%d/v1/models", other.port), Key: "s3cret"}, both, ""), "401")
}

// Headers go with all that is asked of the task's own port, and with nothing else.
// What the server repeats of them is not told on, however it repeats it.
func TestHeaders(t *testing.T) {
	routes := map[string]string{"/v1/completions": `{"choices":[{"text":" there"}]}`, "/v1/models": `{"data":[{"id":"a"}]}`}
	s := start(t, serverConfig{Header: "X-Token: s3cret", Routes: routes}, nil)
	right := []Header{{"X-Token", "s3cret"}, {"User-Agent", "mine"}}
	ready(t, once(t, Check{Port: s.port, Completion: true, Headers: right}, s.subject(t), ""))
	ready(t, once(t, Check{Port: s.port, HTTP: "/v1/models", Headers: right}, s.subject(t), ""))
	notReady(t, once(t, Check{Port: s.port, HTTP: "/v1/models"}, s.subject(t), ""), "403 Forbidden")
	for _, h := range []Header{
		{"X-Token", "wr0ng-one"}, {"X-Token", `wr0ng"one\\`}, {"Authorization", "Bearer wr0ng-one"}, {"Authorization", "Basic d3IwbmctdXNlcjp3cjBuZy1vbmU="},
		{"X-Token", strings.Repeat("wr0ng-", 30)}, {"Cookie", "a=wr0ng-one; b=2"}, {"Host", "wr0ng-one"},
	} {
		for _, c := range []Check{{Completion: true}, {HTTP: "/v1/models"}, {HTTP: "/v1/models", Expect: Expect{Status: 200}}} {
			c.Port, c.Headers = s.port, []Header{h}
			r := once(t, c, s.subject(t), "")
			notReady(t, r, "403 Forbidden")
			if strings.Contains(r.Reason, "wr0ng") || strings.Contains(r.Reason, "d3Iwbm") {
				t.Errorf("%s is told: %s", h.Name, r.Reason)
			}
		}
	}
	other := start(t, serverConfig{Header: "X-Token: s3cret", Routes: routes}, nil)
	both := Subject{Command: s.pid, Tree: []int{s.pid, other.pid}}
	notReady(t, once(t, Check{Port: s.port, HTTP: fmt.Sprintf("http://127.0.0.1:%d/v1/models", other.port), Headers: right}, both, ""), "403")
}

// elsewhere is a host on which the task has a network of its own: it listens there on
// its port, and the connection that hob makes is a stranger's.
type elsewhere struct{ identity.Host }

func (e elsewhere) Sockets(ctx context.Context, pid int) ([]identity.Socket, error) {
	all, err := e.Host.Sockets(ctx, pid)
	return slices.DeleteFunc(all, func(s identity.Socket) bool { return !s.Listen }), err
}

// Whoever has the task's port in hob's own network is told no secret.
func TestNoSecretGoesElsewhere(t *testing.T) {
	asked := make(chan *http.Request, 8)
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r }))
	t.Cleanup(stranger.Close)
	port := stranger.Listener.Addr().(*net.TCPAddr).Port
	me := Subject{Command: os.Getpid(), Tree: []int{os.Getpid()}}
	for _, path := range []string{"/health", fmt.Sprintf("http://me:s3cret@127.0.0.1:%d/health", port)} {
		c := Check{Port: port, HTTP: path, Key: "s3cret", Headers: []Header{{"X-Token", "s3cret"}}}
		notReady(t, Once(t.Context(), elsewhere{local(t)}, c, me, nil), "another network namespace")
		select {
		case r := <-asked:
			if r.Header.Get("X-Token") != "" || r.Header.Get("Authorization") != "" {
				t.Errorf("%s was sent %v", path, r.Header)
			}
		default:
		}
	}
}

// A value that says nothing is not hidden: it would take half of an answer with it.
func TestHide(t *testing.T) {
	c := Check{Key: "k3y", Headers: []Header{{"X-A", "1"}, {"Authorization", "Token abcd efgh"}, {"Host", "a.example"}}}
	for text, want := range map[string]string{
		"1 k3y": "1 …", "Token abcd efgh": "…", "abcd, efgh, Token": "…, …, Token", "http://a.example/": "http://…/", "": "",
	} {
		if got := c.hide(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	short := Check{Headers: []Header{{"X-A", "1"}, {"X-B", "ab"}, {"X-C", "on"}, {"X-D", "é1"}, {"X-E", "**"}}}
	for text, want := range map[string]string{
		`no token, but "ab"`: `no token, but "…"`, "ab": "…", "abc ab, cab ab1 _ab": "abc …, cab ab1 _…", "1 connection on abab": "1 connection … abab",
		"é1 né1 é1é": "… né1 é1é", "a ** b": "a … b",
	} {
		if got := short.hide(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := (Check{}).hide("as it is"); got != "as it is" {
		t.Error(got)
	}
}
