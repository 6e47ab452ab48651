package recipes

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// slips notes what is valid but hardly meant: what only a shell would fill in, and
// arguments that tell an engine a second time where to listen.
func (l *loader) slips(d *draft) {
	if d.node.replica > 1 {
		return // said of the first
	}
	for _, key := range []string{"model", "dir", "host", "env_file"} {
		for _, n := range d.node.get(key).texts() {
			l.slipIn(d, key, n, func(string) bool { return true })
		}
	}
	for _, key := range []string{"command", "args", "before", "after_ready", "after_stop"} {
		l.slipInCommand(d, key, d.node.get(key))
	}
	l.slipInCommand(d, "ready's exec", d.node.get("ready").get("exec"))
	l.slipInSyntax(d)
	l.slipTogether(d)
	l.slipInSecrets(d)
	l.slipHome(d)
	l.slipAddress(d)
}

// knownTo reports whether a variable of that name is there to be meant.
func (l *loader) knownTo(d *draft) func(name string) bool {
	return func(name string) bool {
		_, own := d.scope.own[name]
		return own || l.vars.nodes[name] != nil || name == "port" && d.task.Port != (Port{}) ||
			d.node.get("env").has(name) || l.getenv(name) != ""
	}
}

// slipIn notes the variables of a text that are not written as ${NAME}.
func (l *loader) slipIn(d *draft, key string, n *node, meant func(string) bool) {
	if n.literal || n.form&scalars == 0 {
		return
	}
	for _, name := range bare(n.raw) {
		if meant(name) {
			l.noteOnce("%s: %s: $%s stays as it is, for no shell sees it: write ${%s} (line %d)", d.name, key, name, name, n.line)
		}
	}
}

func (l *loader) slipInCommand(d *draft, key string, n *node) {
	if n != nil && n.form == mapping { // a hook
		n = n.get("command")
	}
	known := l.knownTo(d)
	if n == nil || key == "args" && runsShell(d.task.Command) {
		return
	}
	if shellText(d, key, n) { // it has variables of its own; those of the recipe are none
		known = func(name string) bool { return l.vars.nodes[name] != nil && !d.node.get("env").has(name) }
	}
	for _, one := range n.texts() {
		assigned := one.raw
		l.slipIn(d, key, one, func(name string) bool {
			return known(name) && !strings.Contains(assigned, name+"=") && !strings.Contains(assigned, "for "+name+" ")
		})
	}
}

// slipInSyntax notes what means something to a shell, in a command that none sees.
func (l *loader) slipInSyntax(d *draft) {
	n := d.node.get("command")
	if n == nil || shellText(d, "command", n) {
		return
	}
	sign, how := "", "say shell: true"
	if n.form == sequence {
		how = "write the command as text, and say shell: true"
		for _, w := range n.words() {
			if w == "&&" || w == "||" {
				sign = w
			}
		}
	} else if sign = shellSign().FindString(inBraces().ReplaceAllString(inQuotes().ReplaceAllString(n.raw, "_"), "_")); sign == "" && assignment().MatchString(n.raw) {
		l.noteOnce("%s: command: it begins with the setting of a variable, which is taken for the program, for no shell sees it: write it under env (line %d)", d.name, n.line)
	}
	if sign = strings.TrimSpace(sign); sign != "" {
		l.noteOnce("%s: command: %s is a word like any other, for no shell sees it: %s (line %d)", d.name, sign, how, n.line)
	}
}

// slipTogether notes a flag and its value that are one word.
func (l *loader) slipTogether(d *draft) {
	if runsShell(d.task.Command) {
		return
	}
	for _, key := range []string{"command", "args"} {
		n := d.node.get(key)
		if n == nil || n.form != sequence {
			continue
		}
		for _, one := range n.items {
			if flag, value, ok := strings.Cut(one.raw, " "); ok && together().MatchString(one.raw) {
				l.noteOnce("%s: %s: %s is one word to the program: write %s, %s (line %d)", d.name, key, one.quoted(), flag, flowWord(value), one.line)
			}
		}
	}
}

var (
	together   = lazy(`^--[a-z][a-z0-9_.-]* +[^\s-][^\s]*$`)
	inBraces   = lazy(`\$\{[^}]*\}`)
	inQuotes   = lazy(`'[^']*'|"(?:[^"\\]|\\.)*"|\\.`)
	shellSign  = lazy(`&&|\|\||\$\(|` + "`" + `|;( |$)|(^| )([|&]|[0-9&]?>>?(&[0-9])?|<)( |$|[A-Za-z0-9_./~-])`)
	assignment = lazy(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// shellText reports whether a shell fills a command in.
func shellText(d *draft, key string, n *node) bool {
	if key == "command" && d.node.get("shell").isTrue() {
		return true
	}
	if n.form == sequence {
		return runsShell(n.words())
	}
	return runsShell(strings.Fields(n.raw))
}

// runsShell reports whether a command is one that reads another's text.
func runsShell(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	switch path.Base(argv[0]) {
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "ssh", "awk", "perl", "jq", "envsubst":
		return true
	}
	return slices.ContainsFunc(argv, func(w string) bool { return w == "-c" || w == "-lc" })
}

// slipInSecrets notes values that are nothing but a variable's name: a dollar in
// any other may be part of what they hold.
func (l *loader) slipInSecrets(d *draft) {
	known, ready := l.knownTo(d), d.node.get("ready")
	whole := func(key string, n *node) {
		if n == nil || n.form&scalars == 0 {
			return
		}
		if name, ok := strings.CutPrefix(strings.TrimPrefix(n.raw, "Bearer "), "$"); ok && varsName().MatchString(name) {
			l.slipIn(d, key, n, known)
		}
	}
	if env := d.node.get("env"); env != nil {
		for _, p := range env.pairs {
			whole("env "+p.key.raw, p.value)
		}
	}
	whole("ready's api_key", ready.get("api_key"))
	if headers := ready.get("headers"); headers != nil {
		for _, p := range headers.pairs {
			whole("ready's header "+p.key.raw, p.value)
		}
	}
}

// slipHome notes words that begin with ~, which no program but a shell reads. What a
// variable put into one is not shown.
func (l *loader) slipHome(d *draft) {
	for _, key := range []string{"command", "args"} {
		n := d.node.get(key)
		if n == nil || runsShell(d.task.Command) {
			continue
		}
		for _, one := range n.texts() {
			if n.form == sequence && inHome(one.text) || n.form != sequence && slices.ContainsFunc(strings.Fields(one.raw), inHome) {
				of := ""
				if n.form == sequence { // all of a text may hold more than a path
					of = " of " + one.quoted()
				}
				l.noteOnce("%s: %s: the ~%s stays as it is, for no shell sees it: write ${HOME}/… (unless the program knows what ~ is)", d.name, key, of)
			}
		}
	}
	env := d.node.get("env")
	if env == nil {
		return
	}
	for _, p := range env.pairs {
		if inHome(p.value.str()) && !strings.HasPrefix(p.key.raw, "HF_") { // huggingface_hub reads it
			l.noteOnce("%s: env %s: the ~ stays as it is, for no shell sees it: write ${HOME}/… (unless the program knows what ~ is)", d.name, p.key.raw)
		}
	}
}

// inHome reports whether a word, or what a flag is set to by =, begins with ~.
func inHome(w string) bool {
	if _, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "-") {
		w = value
	}
	return strings.HasPrefix(w, "~/")
}

// slipAddress notes what tells the engine to listen elsewhere than hob asks.
func (l *loader) slipAddress(d *draft) {
	if d.engine == nil {
		return
	}
	if env := d.engine.tree.get("env"); env != nil {
		for _, p := range env.pairs {
			key, said := address(p.value.raw), d.node.get("env").get(p.key.raw)
			if key != "" && said != nil && !strings.Contains(said.raw, "${port}") {
				l.noteOnce("%s: env %s replaces what hob tells %s with host: and port:, and hob asks where those say: use them instead", d.name, p.key.raw, d.engine.name)
			}
		}
	}
	if d.node.has("command") {
		return
	}
	flag := ""
	for _, n := range d.engine.tree.get("command").texts() {
		if key := address(n.raw); key != "" && n.raw == "${"+key+"}" && strings.HasPrefix(flag, "-") {
			l.slipFlag(d, flag, key)
		}
		flag = n.raw
	}
}

// slipFlag notes a flag among the args that the engine's command has already.
func (l *loader) slipFlag(d *draft, flag, key string) {
	args := d.node.get("args").texts()
	for i, n := range args {
		name, value, joined := strings.Cut(n.text, "=")
		if name != flag {
			continue
		}
		_, shown, _ := strings.Cut(n.raw, "=")
		if !joined && i+1 < len(args) {
			value, shown = args[i+1].text, args[i+1].raw
		}
		if value == "" || value == d.own.own[key] || strings.Contains(value, "${"+key+"}") {
			continue
		}
		l.noteOnce("%s: args: hob gives %s its %s already, and asks where that says: write %s: %s instead", d.name, d.engine.name, flag, key, cut(shown))
	}
}

// address is the key of a recipe by which a word of an engine's command is filled in:
// port or host; "" for words that name neither.
func address(raw string) string {
	for _, key := range []string{"port", "host"} {
		if strings.Contains(raw, "${"+key+"}") {
			return key
		}
	}
	return ""
}

// bare are the names in a text that a shell would take for variables and hob does
// not: $NAME without brackets. $$ is a dollar.
func bare(s string) []string {
	var all []string
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			return all
		}
		s = s[i+1:]
		switch {
		case strings.HasPrefix(s, "$"):
			s = s[1:]
		case strings.HasPrefix(s, "{"):
			if end := closing("$" + s); end > 0 {
				s = s[end:]
			}
		default:
			if name := bareName().FindString(s); name != "" {
				all = append(all, name)
			}
		}
	}
}

var bareName = lazy(`^[A-Za-z_][A-Za-z0-9_]{0,63}`)

// maxNotes keeps a recipe from being answered with notes without end.
const maxNotes = 50

func (l *loader) noteOnce(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); len(l.notes) < maxNotes && !slices.Contains(l.notes, s) {
		l.notes = append(l.notes, s)
	}
}
