package recipes

import (
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/kballard/go-shellquote"
)

// Defaults of the language; the tables say them to people.
const (
	hookTimeout = 5 * time.Minute

	stopHookTimeout = time.Minute // whoever stops a task waits for it

	stopGrace     = 30 * time.Second
	stopTermGrace = 5 * time.Second
)

// What readiness, restart and retries come to when the recipe does not say; the keeper knows
// no others.
const (
	ReadyTimeout  = 5 * time.Minute        // to become ready
	ReadyInterval = 250 * time.Millisecond // between two looks before that, and less at first

	RestartMax  = 3           // ends in a row
	RestartWait = time.Second // before the first, doubled each time
)

// finish makes the task of a draft that was checked.
func (l *loader) finish(d *draft) {
	t := &d.task
	t.Name, t.Kind, t.Line, t.Column = d.name, d.kind, d.key.line, d.key.col
	if d.engine != nil {
		t.Engine = d.engine.name
	}
	t.Model = l.home(d.node.get("model").str())
	t.ModelAt = l.modelAt(d)
	t.DependsOn, t.Replica, t.Groups = []Dependency{}, d.node.replica, d.node.get("groups").words()
	if t.Host = d.node.get("host").str(); d.engine != nil {
		t.Host = d.own.own["host"]
	}
	if t.Dir = l.path(d.node.get("dir"), d.node.src.dir); l.rehearsed(d) && !isDir(t.Dir) {
		t.Dir = d.node.src.dir // it is on the machine that is rehearsed for
	}
	l.command(d)
	l.slips(d)
	if instead := l.words(d.node.get("rehearse"), d.scope); l.rehearsed(d) && instead != nil {
		t.Command = instead
	} else if l.rehearsed(d) {
		t.Command = l.rehearsal(d)
	}
	l.hooks(d)
	l.gpus(d)
	l.env(d)
	t.Ready = l.ready(d)
	t.Stop = l.stop(d)
	t.Restart, t.Expects = restart(d), l.expects(d)
	if !l.rehearsed(d) {
		t.Needs = needs(l.fact(d, "needs", needsRule))
	}
	l.checkTask(d)
}

// hooks reads the commands that go with a task's life. A rehearsal has none: they
// are for the machine that is rehearsed for.
func (l *loader) hooks(d *draft) {
	before, ready, stop := l.hook(d, "before", hookTimeout), l.hook(d, "after_ready", hookTimeout), l.hook(d, "after_stop", stopHookTimeout)
	if !l.rehearsed(d) {
		d.task.Before, d.task.AfterReady, d.task.AfterStop = before, ready, stop
	}
}

func (l *loader) hook(d *draft, key string, timeout time.Duration) *Hook {
	n := d.node.get(key)
	if n == nil {
		return nil
	}
	what := n
	if n.form == mapping {
		timeout = n.get("timeout").duration(timeout)
		if what = n.get("command"); what == nil {
			if !n.strange && !n.anyBad("command") {
				l.errs.add(n, "add command: what it runs", "%s has nothing to run", key)
			}
			return nil
		}
	}
	return &Hook{l.words(what, d.scope), timeout}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// fact is what the task says about something, laid over what its engine says.
func (l *loader) fact(d *draft, key string, r *rule) *node {
	var base *node
	if d.engine != nil {
		base = l.filled(d.engine.tree.get(key), d.own)
		if key == "needs" && base != nil && d.node.has("command") {
			base = base.without("commands") // the engine's program is not what runs
		}
	}
	return merge(base, d.node.any(key), r)
}

// checkTask is what no table can say.
func (l *loader) checkTask(d *draft) {
	t := &d.task
	if len(t.Command) == 0 && !d.node.bad && !d.node.strange && !d.node.anyBad("engine", "command", "shell", "args") {
		l.errs.add(d.key, "say engine or command", "%s %s has nothing to run", d.kind, d.name)
	}
	if d.engine != nil && d.engine.text("model", "required") == "required" && !d.node.has("model") && !d.node.has("command") && !d.node.anyBad("engine") {
		l.errs.add(d.key, "add model: NAME", "%s: the engine %s needs a model", d.name, d.engine.name)
	}
	if r := t.Ready; r != nil && (r.HTTP != "" || r.TCP || r.Completion) && t.Port == (Port{}) && !d.node.anyBad("port") {
		l.errs.add(d.node.any("ready"), "add port: auto, and ${port} where the command takes it", "%s has no port that could answer", d.name)
	}
}

func (n *node) anyBad(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { v := n.any(k); return v != nil && v.bad })
}

// command is the argv: what the task says or else its engine, then args.
func (l *loader) command(d *draft) {
	t := &d.task
	own, shell := d.node.get("command"), d.node.get("shell")
	switch {
	case own == nil && d.node.has("command"):
	case shell != nil && shell.text == "true":
		l.shellCommand(d, own, shell)
		return
	case own == nil && d.engine != nil:
		t.Command = l.engineCommand(d)
	case own == nil && d.kind == "shell":
		t.Command = []string{l.loginShell()}
	default:
		t.Command = l.words(own, d.scope)
	}
	if len(t.Command) > 0 {
		t.Command = append(t.Command, d.node.get("args").words()...)
	}
}

// engineCommand is the engine's argv. Without a model what names it falls away.
func (l *loader) engineCommand(d *draft) []string {
	c := d.engine.tree.get("command")
	if flag := d.engine.tree.get("model_flag"); flag != nil {
		d.own.own["model_flag"] = flag.get(modelForm(d.own.own["model"])).str()
	}
	if c == nil || d.own.own["model"] != "" {
		return l.filled(c, d.own).words()
	}
	some := *c
	some.items = slices.DeleteFunc(slices.Clone(c.items), func(n *node) bool {
		return n.raw == "${model}" || n.raw == "${model_flag}"
	})
	return l.filled(&some, d.own).words()
}

// modelForm tells a model that is a file or folder from one that is a name.
func modelForm(model string) string {
	for _, start := range []string{"/", "./", "../", "~/"} {
		if strings.HasPrefix(model, start) {
			return "file"
		}
	}
	switch filepath.Ext(model) {
	case ".gguf", ".bin", ".safetensors", ".kcpps":
		return "file"
	}
	return "name"
}

func (l *loader) shellCommand(d *draft, own, shell *node) {
	switch args := d.node.any("args"); {
	case own == nil:
		l.errs.add(shell, "say command: the text for it", "shell: true without a command")
	case own.form == sequence:
		l.errs.add(own, "write it as text, or leave shell out", "a list runs as it is; shell: true goes with text")
	case args != nil:
		l.errs.add(args, "write them into the command", "args cannot be added to a shell's text")
	default:
		if text := l.fill(own, d.scope); !own.bad {
			d.task.Command = []string{"/bin/sh", "-c", text}
		}
	}
}

func (l *loader) loginShell() string {
	if sh := l.getenv("SHELL"); filepath.IsAbs(sh) {
		return sh
	}
	return "/bin/sh"
}

// words are those of a command: a list as it is, a text split; nil for none.
func (l *loader) words(n *node, s *scope) []string {
	switch {
	case n == nil:
		return nil
	case n.form != sequence:
		return l.split(n, s)
	case len(n.items) == 0:
		l.errs.add(n, "", "the command is empty")
	}
	return n.words()
}

// split takes a command's text apart as a POSIX shell does. Variables are filled
// in afterwards: what they hold stays one word.
func (l *loader) split(n *node, s *scope) []string {
	ps, err := parts(n.raw)
	if err != nil {
		l.badReference(n, err)
		return nil
	}
	var text strings.Builder
	for i, p := range ps { // NUL cannot stand in a file: it marks the references
		if p.name == "" {
			text.WriteString(p.literal)
			continue
		}
		text.WriteString("\x00" + strconv.Itoa(i) + "\x00")
	}
	argv, err := shellquote.Split(text.String())
	if err != nil {
		l.errs.add(n, "", "the command cannot be split into words: %s", strings.ToLower(err.Error()))
		return nil
	}
	if len(argv) == 0 {
		l.errs.add(n, "", "the command is empty")
	}
	for i, word := range argv {
		argv[i] = l.bounded(n, s.expand(rejoin(word, ps), l.missing(n)))
	}
	return argv
}

// rejoin puts the references back into a word.
func rejoin(word string, ps []part) []part {
	var out []part
	for i, piece := range strings.Split(word, "\x00") {
		switch {
		case i%2 == 0 && piece != "":
			out = append(out, part{literal: piece})
		case i%2 == 1:
			k, _ := strconv.Atoi(piece)
			out = append(out, ps[k])
		}
	}
	return out
}

// modelAt says where a model must be found before the task starts.
func (l *loader) modelAt(d *draft) string {
	switch model := d.task.Model; {
	case d.engine == nil || model == "" || l.rehearsed(d) || d.node.has("command"):
		return ""
	case modelForm(model) == "file":
		return "path"
	case strings.Count(model, "/") == 1:
		return d.engine.text("cache", "")
	}
	return ""
}

// home is a path with ~ written out, as a shell would: no program does.
func (l *loader) home(path string) string {
	if h := l.getenv("HOME"); h != "" && strings.HasPrefix(path, "~/") {
		return filepath.Join(h, path[1:])
	}
	return path
}

// path is a file or folder, from where its recipe stands.
func (l *loader) path(n *node, base string) string {
	p := n.str()
	if p == "~" || strings.HasPrefix(p, "~/") {
		home := l.getenv("HOME")
		if home == "" {
			l.errs.add(n, "write the whole path", "~ is nowhere: HOME is not set")
		}
		p = filepath.Join(home, p[1:])
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

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

// key is what the server may ask for before it answers.
func (r *Ready) key(n *node, e *engine) {
	r.APIKey = n.get("api_key").str()
	if e != nil {
		from := e.tree.get("api_key")
		r.KeyEnv, r.KeyFlags = from.get("env").words(), from.get("flags").words()
	}
}

// headers are what a question is asked with besides the key.
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

// beside reports what is said of a question that is not asked.
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

func (l *loader) stop(d *draft) Stop {
	n := l.fact(d, "stop", stopRule)
	signal, detached := "TERM", "kill"
	if d.kind == "shell" {
		signal, detached = "HUP", "report"
	}
	return Stop{
		Signal: n.get("signal").or(signal), Detached: n.get("detached").or(detached),
		Grace: n.get("grace").duration(stopGrace), TermGrace: n.get("term_grace").duration(stopTermGrace),
		Spare: n.get("spare").words(),
	}
}

func restart(d *draft) Restart {
	r := Restart{Policy: "no", Backoff: RestartWait}
	if n := d.node.get("retries"); n != nil && n.number() > 0 {
		return Restart{Policy: "on-failure", Max: n.number(), Backoff: RestartWait}
	}
	n := d.node.get("restart")
	if n == nil {
		return r
	}
	if r.Policy = n.str(); n.form == mapping {
		r.Policy = n.get("policy").or("on-failure")
	}
	if r.Policy == "no" {
		return r
	}
	r.Max, r.Backoff = RestartMax, n.get("backoff").duration(RestartWait)
	if m := n.get("max"); m != nil {
		r.Max = m.number()
	}
	if r.Max == 0 { // to whoever starts it again 0 is "not said"
		return Restart{Policy: "no", Backoff: RestartWait}
	}
	return r
}

func needs(n *node) Needs {
	return Needs{Commands: n.get("commands").words(), Memory: n.get("memory").size(), GPUMemory: n.get("gpu_memory").size(), Disk: n.get("disk").size()}
}

// Values of nodes that the walk has checked; of nil they are empty.

func (n *node) str() string { return n.or("") }

func (n *node) or(otherwise string) string {
	if n == nil || n.bad || n.form&scalars == 0 {
		return otherwise
	}
	return n.text
}

func (n *node) isTrue() bool { return n.str() == "true" }

func (n *node) number() int {
	i, _ := strconv.Atoi(n.str())
	return i
}

func (n *node) duration(otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(n.str()); err == nil {
		return d
	}
	return otherwise
}

func (n *node) size() int64 {
	b, err := humanize.ParseBytes(n.str())
	if err != nil {
		return 0
	}
	return int64(b)
}

func (n *node) words() []string {
	if n == nil || n.bad {
		return nil
	}
	if n.form != sequence {
		return []string{n.text}
	}
	var all []string
	for _, item := range n.items {
		all = append(all, item.text)
	}
	return all
}
