package convert

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
	"gopkg.in/yaml.v3"

	"hob/recipes"
)

// The format is that of llama-swap's config.example.yaml
// (https://github.com/mostlygeek/llama-swap). It is a proxy that starts models when
// they are asked for; hob starts servers, so each model gets a port of its own.

// firstPort is where its automatic ports begin.
const firstPort = 5800

// swap is what holds for all models of the file.
type swap struct {
	macros  []macro
	timeout string
	port    int // the next automatic one
	groups  map[string][]string
}

type macro struct{ name, value string }

func (r *reader) llamaSwap(top *section, d *draft) {
	sw := swap{port: firstPort, macros: r.macros(top), groups: map[string][]string{}}
	if n, ok := top.port("startPort", "the first of the ports"); ok {
		sw.port = n
	}
	if n, ok := top.number("healthCheckTimeout", "ready: timeout"); ok && n > 0 {
		sw.timeout = fmt.Sprintf("%ds", max(n, 15)) // less counts as that
	}
	models := top.below("models")
	if models != nil {
		r.swapGroups(top, models, &sw)
		for _, id := range modelOrder(models.v) {
			if s := r.section("models."+shortened(id), models.v.Get(id)); s != nil {
				models.used[id] = true
				r.swapModel(id, s, &sw, d)
				s.end()
			}
		}
	}
	r.preload(top)
	const proxy = "hob starts servers and is no proxy"
	top.refuse(proxy, "logLevel", "logTimeFormat", "logToStdout", "logRequests", "metricsMaxInMemory", "captureBuffer", "sendLoadingState",
		"includeAliasesInList", "apiKeys", "peers", "performance", "upstream", "ui", "store", "routing")
	top.refuse("hob ends no server because another is wanted: hob up TASK starts those that fit together", "matrix")
	top.refuse("hob unloads nothing that is idle", "globalTTL")
	d.head = append(d.head, "llama-swap starts a model when it is asked for, hob all that it is told to: hob up TASK… starts some.")
}

// modelOrder is the order in which automatic ports are given: by the models' ids.
func modelOrder(models *recipes.Value) []string {
	var ids []string
	for _, p := range models.Pairs {
		ids = append(ids, p.Key.Text)
	}
	slices.Sort(ids)
	return ids
}

// macros are the substitutions of the file or of a model, in their order.
func (r *reader) macros(s *section) []macro {
	var all []macro
	for _, p := range s.pairs("macros", "written out where they are used") {
		all = append(all, macro(p))
	}
	return all
}

var (
	swapRef = lazy(`\$\{([a-zA-Z0-9_.-]+)\}`)
	swapEnv = lazy(`\$\{env\.([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// maxExpansion bounds what macros that name macros may grow to.
const maxExpansion = 64 << 10

// fill writes the macros of a text out. A macro may only name those before it, so
// they are filled in from the last to the first.
func (r *reader) fill(v *recipes.Value, text string, macros []macro, id string) string {
	for _, macro := range slices.Backward(macros) {
		text = strings.ReplaceAll(text, "${"+macro.name+"}", macro.value)
		if len(text) > maxExpansion {
			r.wrong(v, "with its macros written out it is longer than %d bytes", maxExpansion)
			return ""
		}
	}
	text = swapEnv().ReplaceAllString(text, ref("$1"))
	return strings.ReplaceAll(strings.ReplaceAll(text, "${MODEL_ID}", id), "${PORT}", ref("port"))
}

// unknown names what is left that looks like a macro.
func (r *reader) unknown(path string, line int, text string) {
	for _, m := range swapRef().FindAllString(text, -1) {
		r.drop(line, path, fmt.Sprintf("there is no macro %s; it stands there as it is", m))
	}
}

func (r *reader) swapModel(id string, s *section, sw *swap, d *draft) {
	cmd := s.take("cmd", "command")
	if cmd == nil || !cmd.Scalar() {
		r.wrong(s.v, "%scmd must say what to run", s.path)
		return
	}
	macros := slices.Concat(sw.macros, r.macros(s))
	text := r.fill(cmd, cmd.Text, overlaid(macros), id)
	args, err := shellquote.Split(oneCommandLine(text))
	if err != nil || len(args) == 0 {
		r.wrong(cmd, "%scmd cannot be taken apart into words", s.path)
		return
	}
	r.unknown(s.path+"cmd", cmd.Line, text)
	t := d.add("servers", id)
	t.line = cmd.Line
	t.about = append(t.about, r.aboutModel(id, s, t)...)
	t.set("command", argv(args))
	env := r.swapEnviron(s, macros, id)
	r.swapPort(s, t, args, env, sw, macros, id)
	t.environ(env)
	r.swapReady(s, t, sw, macros, id)
	if base(args[0]) == "docker" || base(args[0]) == "podman" {
		r.listenerAny(t)
	}
	if names := sw.groups[id]; len(names) > 0 {
		t.set("groups", words(names))
	}
	r.swapRest(s)
}

// overlaid keeps of two macros of one name the later one, in its place.
func overlaid(all []macro) []macro {
	var kept []macro
	for i, m := range all {
		if !slices.ContainsFunc(all[i+1:], func(later macro) bool { return later.name == m.name }) {
			kept = append(kept, m)
			continue
		}
		for _, later := range all[i+1:] { // what came between may name it
			if later.name == m.name {
				kept = append(kept, macro{m.name, later.value})
				break
			}
		}
	}
	return kept
}

var swapComment = lazy(`^\s*#`)

// oneCommandLine leaves comment lines out, and joins what is broken by \.
func oneCommandLine(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if !swapComment().MatchString(line) {
			lines = append(lines, strings.TrimSuffix(strings.TrimRight(line, " \t\r"), `\`))
		}
	}
	return strings.Join(lines, " ")
}

func (r *reader) aboutModel(id string, s *section, t *task) []string {
	var about []string
	if id != t.name {
		about = append(about, "llama-swap calls it "+shortened(id)+".")
	}
	name, says := s.text("name", "a comment"), s.text("description", "a comment")
	for _, one := range []string{name, says} {
		if one != "" {
			about = append(about, oneLine(one))
		}
	}
	return about
}

func (r *reader) swapEnviron(s *section, macros []macro, id string) []pair {
	var env []pair
	v := s.v.Get("env")
	for _, one := range s.texts("env", "env") {
		name, value, ok := strings.Cut(one, "=")
		if !ok || !envName().MatchString(name) {
			r.wrongSecret(v, "%senv must be a list of NAME=value", s.path)
			continue
		}
		env = setPair(env, pair{name, r.fill(v, value, overlaid(macros), id)})
	}
	return env
}

// swapPort finds the port: ${PORT}, else that of proxy, else the command's.
func (r *reader) swapPort(s *section, t *task, args []string, env []pair, sw *swap, macros []macro, id string) {
	k := recognise(env, args)
	if k != nil {
		t.serve(k)
	}
	said, proxy := s.text("proxy", ""), ""
	var v *recipes.Value
	if said != "" {
		v = s.v.Get("proxy")
		proxy = r.fill(v, said, overlaid(macros), id)
	}
	uses := slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, ref("port")) }) || strings.Contains(proxy, ref("port"))
	switch {
	case uses && sw.port > 65535:
		t.set("port", plain("auto"))
	case uses:
		t.say("port", number(sw.port), "llama-swap chose one each time")
		sw.port++
		if v != nil {
			r.keep(v.Line, s.path+"proxy", "port")
		}
	case v != nil:
		r.proxyPort(s, v, proxy, t)
	case t.get("port") == nil && (k == nil):
		r.drop(s.v.Line, strings.TrimSuffix(s.path, "."), "its port: neither cmd nor proxy says it; add port")
	}
}

func (r *reader) proxyPort(s *section, v *recipes.Value, proxy string, t *task) {
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		r.wrong(v, "%sproxy must be an address, like http://127.0.0.1:8080", s.path)
		return
	}
	port := u.Port()
	if port == "" && u.Scheme == "http" {
		port = "80"
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		r.drop(v.Line, s.path+"proxy", "it has no port that hob could ask")
		return
	}
	if !everywhere(u.Hostname()) {
		r.drop(v.Line, s.path+"proxy", "it is on another machine, or under another name: hob asks the server that it started")
	} else {
		r.keep(v.Line, s.path+"proxy", "port")
	}
	t.set("port", number(n))
}

func (r *reader) swapReady(s *section, t *task, sw *swap, macros []macro, id string) {
	path, line := "/health", 0
	if said := s.text("checkEndpoint", "ready: http"); said != "" {
		v := s.v.Get("checkEndpoint")
		path, line = r.fill(v, said, overlaid(macros), id), v.Line
	}
	if t.get("port") == nil && t.get("engine") == nil {
		return
	}
	ready := []pair{{"http", escaped("/" + strings.TrimPrefix(path, "/"))}}
	if path == "none" {
		ready = []pair{{"tcp", "true"}}
	}
	if strings.ContainsAny(path, " \t\r\n"+string(refOpen)) {
		r.drop(line, s.path+"checkEndpoint", "it is no path")
		ready = []pair{{"tcp", "true"}}
	}
	if line == 0 && t.get("engine") != nil { // its engine knows better
		ready = nil
	}
	if sw.timeout != "" {
		ready = append(ready, pair{"timeout", sw.timeout})
	}
	if len(ready) > 0 {
		t.set("ready", readyOf(ready))
	}
}

func readyOf(pairs []pair) *yaml.Node {
	n := flow(mappingOf(pairs))
	for i := range pairs {
		if pairs[i].name == "tcp" {
			n.Content[2*i+1] = yes()
		}
	}
	return n
}

// listenerAny: a container's port is another daemon's.
func (r *reader) listenerAny(t *task) {
	n := t.get("ready")
	if n == nil {
		return
	}
	n.Content = append(n.Content, plain("listener"), plain("any"))
	t.about = append(t.about, "What a container runs is another daemon's: hob ends the client, and names the rest.")
}

func (r *reader) swapRest(s *section) {
	const proxy = "hob starts servers and is no proxy"
	s.refuse(proxy, "aliases", "unlisted", "useModelName", "filters", "metadata", "concurrencyLimit", "timeouts", "sendLoadingState")
	s.refuse("hob unloads nothing that is idle", "ttl")
	s.refuse("hob ends a server by a signal (stop: {signal: …}), then all that it started", "cmdStop")
}

// swapGroups: which groups a model is in.
func (r *reader) swapGroups(top, models *section, sw *swap) {
	groups := top.below("groups")
	if groups == nil {
		return
	}
	for _, p := range groups.v.Pairs {
		groups.used[p.Key.Text] = true
		s := r.section("groups."+shortened(p.Key.Text), p.Value)
		if s == nil {
			continue
		}
		s.refuse("hob starts what it is told to, and ends none for another", "swap", "exclusive", "persistent")
		name := slug(p.Key.Text)
		if slices.ContainsFunc(models.v.Pairs, func(m recipes.ValuePair) bool { return slug(m.Key.Text) == name }) {
			name = slug("group-" + name)
		}
		for _, id := range s.texts("members", "groups: "+name) {
			switch {
			case models.v.Get(id) == nil:
				r.drop(s.keyLine("members"), s.path+"members", "there is no model "+shortened(id))
			case name != "" && !slices.Contains(sw.groups[id], name):
				sw.groups[id] = append(sw.groups[id], name)
			}
		}
		s.end()
	}
}

func (r *reader) preload(top *section) {
	hooks := top.below("hooks")
	if hooks == nil {
		return
	}
	defer hooks.end()
	if s := hooks.below("on_startup"); s != nil {
		s.refuse("hob up starts all, hob up TASK… some", "preload")
		s.end()
	}
}
