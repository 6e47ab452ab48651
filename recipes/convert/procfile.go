package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-envparse"
)

// A Procfile is lines of "name: command", each run by a shell with a PORT of its
// own: the base for the first, a step more for each next one (foreman's README
// and lib/foreman/procfile.rb; overmind's README, which adds files of settings and
// nested Procfiles). Lines that are neither are passed over there, and named here.

// portBase and portStep are what both count from, and by.
const (
	portBase = 5000
	portStep = 100
)

// procSettings is what the files beside a Procfile say about it.
type procSettings struct {
	base, step int
	restart    []string
	files      []string // to be read as environments, in their order
}

func (r *reader) procfile(d *draft) {
	set := r.procSettings()
	n := 0
	seen := map[string]int{}
	for i, line := range strings.Split(strings.ReplaceAll(r.text, "\r\n", "\n"), "\n") {
		m := procfileLine().FindStringSubmatch(line)
		switch text := strings.TrimSpace(line); {
		case text == "" || strings.HasPrefix(text, "#"):
		case strings.HasPrefix(text, "-f "):
			r.drop(i+1, shortened(text), "another Procfile: convert it too, and include one in the other")
		case m == nil:
			r.drop(i+1, shortened(text), "it is not NAME: COMMAND, and foreman passes it over too")
		case seen[m[1]] > 0:
			r.drop(i+1, m[1], fmt.Sprintf("the name is taken by line %d", seen[m[1]]))
		default:
			seen[m[1]] = i + 1
			r.process(d, i+1, m[1], strings.TrimSpace(m[2]), set.base+n*set.step, set)
			n++
		}
	}
	d.head = append(d.head, "Other than there, a process that ends does not end the others.")
}

// process is one line: a server, since it is meant to run until it is stopped.
func (r *reader) process(d *draft, line int, name, command string, port int, set procSettings) {
	t := d.add("servers", name)
	t.line = line
	as := "server " + t.name
	if port > 65535 {
		r.drop(line, name+" PORT", "it would be higher than 65535; any free one now")
		port = 0
	}
	usesPort := strings.Contains(command, "$PORT") || strings.Contains(command, "${PORT")
	env, args, ok := simple(command)
	k := recognise(env, args)
	switch {
	case ok:
		env = r.secretless(t, line, name, env, args)
		if k != nil {
			t.serve(k)
		}
	default:
		if k = recognise(words0(command)); k != nil && !strings.ContainsAny(command, "|&;") {
			k.port, k.bound = 0, false
			t.serve(k)
		}
		t.set("command", literal(command)).set("shell", yes())
	}
	if !ok && secretText(command) {
		t.about = append(t.about, "What looks like a secret stands in its command, as in the Procfile: in an env_file it would be kept out of this file, and of ps.")
	}
	if t.get("port") == nil && (usesPort || name == "web") {
		if port > 0 {
			t.set("port", number(port))
		} else {
			t.set("port", plain("auto"))
		}
		env = setPair(env, pair{"PORT", ref("port")})
	} else if t.get("port") == nil && port > 0 {
		env = setPair(env, pair{"PORT", strconv.Itoa(port)})
	}
	t.environ(env)
	if dir := r.folder(""); dir != "" {
		t.set("dir", literal(dir))
	}
	if len(set.files) > 0 {
		t.set("env_file", argv(set.files))
	}
	if slices.Contains(set.restart, name) || slices.Contains(set.restart, "all") {
		t.set("restart", plain("always"))
		as += ", restarted"
	}
	r.keep(line, name, as)
}

// secretless is the command of a process without what looks like a secret in it, and the
// variables that it is given then: a secret is taken from the environment of hob up.
func (r *reader) secretless(t *task, line int, name string, env []pair, args []string) []pair {
	asked := func(v string) string {
		r.drop(line, name, "what looks like a secret in its command: set "+v+" to it for hob up")
		return ref(v + ":?what looked like a secret in the command was not copied")
	}
	for i, p := range env {
		if p.value != "" && (secretName(p.name) || secretValue().MatchString(p.value)) {
			env[i].value = asked(p.name)
		}
	}
	m := moveSecrets(args, "CONVERTED_")
	if m.text == "" {
		t.set("command", argv(args))
		return env
	}
	for _, v := range m.vars {
		env = setPair(env, pair{v.name, asked(v.name)})
	}
	t.set("command", literal(m.text)).set("shell", yes())
	return env
}

// words0 takes a command apart as well as it can be without a shell: only to see
// whose it is.
func words0(command string) (env []pair, args []string) {
	for w := range strings.FieldsSeq(command) {
		if name, value, ok := strings.Cut(w, "="); ok && len(args) == 0 && envName().MatchString(name) {
			env = append(env, pair{name, value})
			continue
		}
		args = append(args, w)
	}
	return env, args
}

// procSettings reads what stands beside the Procfile. Values are looked at only
// where they are settings of the process manager.
func (r *reader) procSettings() procSettings {
	set := procSettings{base: portBase, step: portStep}
	if r.beside == nil {
		return set
	}
	for _, name := range []string{".overmind.env", ".env"} {
		text, err := r.beside(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			r.drop(0, name, "it is there and cannot be read; env_file is to name it")
			continue
		}
		vars, err := envparse.Parse(strings.NewReader(string(text)))
		if err != nil {
			r.drop(0, name, "it cannot be read as NAME=value lines")
			continue
		}
		set.files = append(set.files, r.folder(name))
		r.keep(0, name, "env_file of every server")
		r.settings(name, vars, &set)
	}
	if _, err := r.beside(".foreman"); !errors.Is(err, fs.ErrNotExist) {
		r.drop(0, ".foreman", "hob has no such file: say replicas, port and env in the recipe")
	}
	return set
}

func (r *reader) settings(file string, vars map[string]string, set *procSettings) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		value := vars[name]
		switch name {
		case "PORT", "OVERMIND_PORT":
			if n, err := strconv.Atoi(value); err == nil && n > 0 && n < 65536 {
				set.base = n
				r.keep(0, file+" "+name, "the port of the first process")
			}
		case "OVERMIND_PORT_STEP":
			if n, err := strconv.Atoi(value); err == nil && n > 0 && n < 65536 {
				set.step = n
				r.keep(0, file+" "+name, "how far ports are apart")
			}
		case "OVERMIND_AUTO_RESTART":
			set.restart = append(set.restart, strings.Split(value, ",")...)
			r.keep(0, file+" "+name, "restart: always")
		case "OVERMIND_CAN_DIE":
			r.keep(0, file+" "+name, "so it is with all of hob's")
		default:
			if strings.HasPrefix(name, "OVERMIND_") {
				r.drop(0, file+" "+name, "a setting of overmind that hob has nothing like")
			}
		}
	}
}
