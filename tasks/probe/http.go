package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxBody is how much of an answer is read. A health page is short; a list of
// models may have some thousand entries.
const maxBody = 1 << 20

// acceptWait is how long an HTTP probe waits to be accepted before it sends its
// request: a server that closes after its answer is looked at before, one that
// takes no connection without data (TCP_DEFER_ACCEPT) after.
const acceptWait = time.Second

// answer is what an HTTP server said.
type answer struct {
	status int
	body   []byte
	hide   func(string) string // what it may have told of the question
}

// ok reports whether the status is 2xx.
func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// http asks the recipe's path or URL. If it is on another port than the task's,
// that one is checked as well.
func (a attempt) http(ctx context.Context) error {
	t, err := parseTarget(a.check.HTTP, a.check.Port)
	if err != nil {
		return err
	}
	got, err := a.ask(ctx, t, http.MethodGet, "")
	if err != nil {
		return err
	}
	if got.status == http.StatusUnauthorized && a.check.Expect.Status == 0 && t.port == a.check.Port {
		return fmt.Errorf("%s answered %s: %s", t.url.Redacted(), status(got.status), a.keyless())
	}
	if err := a.check.Expect.match(got); err != nil {
		return fmt.Errorf("%s answered %w", t.url.Redacted(), err)
	}
	if a.check.Port != 0 && t.port != a.check.Port {
		return a.port(ctx, a.check.Port)
	}
	return nil
}

// ask sends one request over a connection of its own and returns the answer,
// once it is known that the task gave it.
func (a attempt) ask(ctx context.Context, t target, method, body string) (answer, error) {
	conn, err := a.connect(ctx, t)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	owned, elsewhere := a.check.AnyOwner, false
	if !owned {
		if owned, elsewhere, err = a.early(ctx, conn); err != nil {
			return answer{}, err
		}
	}
	var headers []Header
	if t.port == a.check.Port && !elsewhere { // the task's own server, and no other
		headers = a.check.headers()
	}
	if elsewhere {
		t = t.anonymous()
	}
	resp, err := send(ctx, conn, t, method, body, headers)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %s", method, t.url.Path, a.late(ctx, err))
	}
	defer resp.Body.Close()
	if !owned {
		// It has answered, so it has accepted; the rest of its answer keeps it there.
		if err := a.acceptor(ctx, conn); err != nil {
			return answer{}, err
		}
	}
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: the answer broke off: %s", method, t.url.Path, a.late(ctx, err))
	}
	return answer{status: resp.StatusCode, body: got, hide: a.check.hide}, nil
}

// headers are those of a question: of the key, and those that the recipe says.
func (c Check) headers() []Header {
	if c.Key == "" {
		return c.Headers
	}
	return append([]Header{{"Authorization", "Bearer " + c.Key}}, c.Headers...)
}

// early waits a little to be accepted by the task; not yet being accepted is no error.
// A connection that is elsewhere is closed already, or whoever listens on that port in
// our network namespace has it, and is not the task: nothing secret may be sent.
func (a attempt) early(ctx context.Context, conn net.Conn) (owned, elsewhere bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, acceptWait)
	defer cancel()
	err = a.accepted(ctx, conn, resting)
	elsewhere = errors.Is(err, errElsewhere)
	if elsewhere || errors.Is(err, errNotAccepted) {
		return false, elsewhere, nil // the request will tell
	}
	return err == nil, false, err
}

// late is why there was no answer: mostly that the attempt's time is over. An error
// may repeat what the server said.
func (a attempt) late(ctx context.Context, err error) string {
	if ctx.Err() == context.DeadlineExceeded {
		return fmt.Sprintf("no answer within %v", a.check.attempt())
	}
	return a.check.hide(err.Error())
}

// send makes the request over conn and no other connection, without proxies,
// redirects or reuse.
func send(ctx context.Context, conn net.Conn, t target, method, body string, headers []Header) (*http.Response, error) {
	u := *t.url
	if u.Host == "" {
		u.Scheme, u.Host = "http", conn.RemoteAddr().String()
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "hob")
	if pass, ok := u.User.Password(); ok {
		req.SetBasicAuth(u.User.Username(), pass)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		req.Header.Set(h.Name, h.Value)
		if http.CanonicalHeaderKey(h.Name) == "Host" { // net/http takes that one from elsewhere
			req.Host = h.Value
		}
	}
	used := false
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if used {
				return nil, errors.New("the server closed the connection without an answer")
			}
			used = true
			return conn, nil
		},
		// A server on loopback has a certificate of its own making; who it is
		// has been shown by who accepted the connection.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	return transport.RoundTrip(req)
}

// quoted is the beginning of the body, for a reason.
func (a answer) quoted() string {
	if text := a.brief(a.body); text != "" {
		return fmt.Sprintf(" (%s)", text)
	}
	return ""
}

// brief is the beginning of something that the server said.
func (a answer) brief(body []byte) string {
	const most = 120
	text := string(bytes.Join(bytes.Fields(body), []byte(" ")))
	if a.hide != nil {
		text = a.hide(text)
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
