package recipes

import (
	"net/textproto"
	"slices"
	"strings"
)

// ready reads how the task shows that it answers; nil for one that need not.
func (l *loader) ready(d *draft) *Ready {
	n := l.fact(d, "ready", readyRule)
	if d.kind != "server" {
		return nil
	}
	r := &Ready{
		HTTP: n.get("http").str(), TCP: n.get("tcp").isTrue(), Log: n.get("log").str(),
		Exec: n.get("exec").words(), Completion: n.get("completion").isTrue(), Listener: n.get("listener").str(),
		Timeout: n.get("timeout").duration(ReadyTimeout), Interval: n.get("interval").duration(ReadyInterval),
	}
	r.key(n, d.engine)
	l.headers(n, r)
	r.expect(n)
	l.beside(d, r)
	l.rehearsable(d, r)
	if r.Listener == "own" {
		r.Listener = ""
	}
	if r.HTTP == "" && r.Log == "" && len(r.Exec) == 0 && !r.Completion && !n.has("tcp") {
		r.TCP = d.task.Port != Port{}
	}
	if r.HTTP == "" && r.Log == "" && len(r.Exec) == 0 && !r.Completion && !r.TCP {
		return nil
	}
	return r
}

// key fills in where the key comes from that the server wants to be asked with.
func (r *Ready) key(n *node, e *engine) {
	r.APIKey = n.get("api_key").str()
	if e != nil {
		from := e.tree.get("api_key")
		r.KeyEnv, r.KeyFlags = from.get("env").words(), from.get("flags").words()
	}
}

// headers reads what else http and completion send.
func (l *loader) headers(n *node, r *Ready) {
	said := n.get("headers")
	if said == nil || said.form != mapping {
		return
	}
	seen := map[string]bool{}
	for _, p := range said.pairs {
		name := textproto.CanonicalMIMEHeaderKey(p.key.raw)
		switch {
		case slices.Contains(framing, name):
			l.errs.add(p.key, "leave it out", "hob sets the header %s itself", name)
		case seen[name]:
			l.errs.add(p.key, "names of headers do not differ by case", "the header %s is there twice", name)
		case name == "Authorization" && n.has("api_key"):
			l.errs.add(p.key, "keep one of them", "api_key is sent as the header Authorization too")
		}
		seen[name] = true
		r.Headers = append(r.Headers, Header{name, p.value.str()})
		r.Names = append(r.Names, name)
	}
}

// framing are the headers that say where a request ends and what becomes of its
// connection.
var framing = []string{"Connection", "Content-Length", "Expect", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// expect is what the answer to http must be.
func (r *Ready) expect(n *node) {
	if r.HTTP == "" {
		return
	}
	r.Status, r.Body = n.get("status").number(), n.get("body").str()
	switch j := n.get("json"); {
	case j == nil:
	case j.form == mapping:
		for _, p := range j.pairs {
			value := p.value.str()
			r.JSON = append(r.JSON, JSONField{p.key.raw, &value})
		}
	default:
		r.JSON = []JSONField{{Path: j.str()}}
	}
}

// beside reports keys that only go with a question (status and body with http, headers
// with http or completion) where that question is not asked.
func (l *loader) beside(d *draft, r *Ready) {
	said := d.node.get("ready")
	if said == nil || said.anyBad("http", "completion") {
		return
	}
	asked := map[string]bool{"http": r.HTTP != "", "completion": r.Completion}
	for _, p := range said.pairs {
		with := readyRule.with[p.key.raw]
		if len(with) > 0 && !slices.ContainsFunc(with, func(kind string) bool { return asked[kind] }) {
			l.errs.add(p.key, "add http: /health, or where it answers", "%s means something only with %s", p.key.raw, strings.Join(with, " or "))
		}
	}
}
