package convert

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cooked is what an entry of a Cookbook says of how it was started.
type cooked struct {
	command, gpus, env, path, platform, port string

	entry   *Entry
	book    *book
	dropped []Note
	secrets []pair
}

func (c *cooked) drop(what, why string) { c.dropped = append(c.dropped, Note{What: what, Says: why}) }

// made makes the entry's recipe, or says why there is none.
func (c *cooked) made() {
	e := c.entry
	d := &draft{kind: "cookbook", names: map[string]bool{}}
	section := "servers"
	if e.Kind == "download" {
		section = "jobs"
	}
	e.Port, _ = strconv.Atoi(c.port)
	t := &task{section: section, name: "serve"}
	if section == "jobs" {
		t.name = "fetch"
	}
	d.tasks = append(d.tasks, t)
	switch why := c.fill(t); {
	case why != "":
		c.book.drop(e.What, "no recipe: "+why)
		return
	case len(c.secrets) > 0:
		t.set("env_file", plain(SecretsFile))
	}
	c.place(t)
	text, ok := envFile(c.secrets)
	if !ok {
		c.book.drop(e.What, "no recipe: it has secrets that an env_file cannot hold")
		return
	}
	d.name = c.book.free(nameOfEntry(*e))
	d.head = c.comments()
	res, err := d.result(c.book.file, &reader{dropped: c.dropped})
	if err != nil {
		c.book.drop(e.What, "no recipe: "+err.Error())
		return
	}
	e.Recipe = &Made{Name: d.name, Text: res.Recipe, Secrets: text, Moved: len(c.secrets), Dropped: res.Dropped}
}

// nameOfEntry is what the recipe is called after: the model without who made it.
func nameOfEntry(e Entry) string {
	for _, s := range []string{e.Name, path.Base(e.Model), e.ID} {
		if i := strings.LastIndexByte(s, '/'); i >= 0 {
			s = s[i+1:]
		}
		if s = slug(s); s != "" {
			return s
		}
	}
	return "imported"
}

// free is a name that no other recipe of the file has.
func (b *book) free(name string) string {
	for n, one := 2, name; ; n++ {
		if !b.names[one] {
			b.names[one] = true
			return one
		}
		tail := fmt.Sprintf("-%d", n)
		one = name[:min(len(name), maxName-len(tail))] + tail
	}
}

func (c *cooked) comments() []string {
	e := c.entry
	head := []string{fmt.Sprintf("Imported from %s (%s) by hob import.", base(c.book.file), e.What)}
	if e.Host != "" {
		head = append(head, fmt.Sprintf("There it ran on %s; hob starts it where it is itself.", e.Host))
	}
	if len(c.secrets) > 0 {
		head = append(head, fmt.Sprintf("Its secrets stand in %s, which only you may read.", SecretsFile))
	}
	return head
}

// fill says what runs; the answer is why it cannot be said.
func (c *cooked) fill(t *task) string {
	command := strings.TrimSpace(c.command)
	switch {
	case c.platform == "windows":
		return "it was started on Windows"
	case command == "" && t.section == "jobs" && strings.TrimSpace(c.entry.Model) != "":
		t.set("engine", plain("hf")).set("model", literal(c.entry.Model))
		c.entry.Args = []string{"hf", "download", c.entry.Model}
		return ""
	case command == "":
		return "it does not say its command"
	case strings.ContainsRune(command, 0) || strings.ContainsAny(command, string(refOpen)+string(refClose)):
		return "its command has characters that no command has"
	}
	env, args, ok := simple(command)
	if !ok {
		return c.shell(t, command)
	}
	c.entry.Args = args
	c.split(t, env)
	if m := moveSecrets(args, "IMPORTED_"); m.text != "" {
		c.secrets = append(c.secrets, m.vars...)
		t.set("command", literal(m.text)).set("shell", yes())
	} else {
		t.set("command", argv(args))
	}
	c.recognised(t, env, args)
	return ""
}

// shell is a command that only a shell understands. A secret in it cannot be moved
// without knowing what the shell would make of it.
func (c *cooked) shell(t *task, command string) string {
	if secretText(command) {
		return "its command is shell text with what looks like a secret in it: write it by hand, the secret in an env_file"
	}
	t.set("command", literal(command)).set("shell", yes())
	c.portOf(t, strings.Fields(command))
	return ""
}

// portOf takes the port that a command says, where its engine has not.
func (c *cooked) portOf(t *task, args []string) {
	if port, err := strconv.Atoi(flagOf(args, "--port", "--server-port")); err == nil && port > 0 && port < 65536 {
		c.entry.Port = port
	}
	if t.section == "servers" && t.get("engine") == nil && c.entry.Port > 0 && c.entry.Port < 65536 {
		t.set("port", number(c.entry.Port))
	}
}

// split parts the variables in front of a command: secrets into the env_file.
func (c *cooked) split(t *task, env []pair) {
	var open []pair
	for _, p := range env {
		if p.value != "" && (secretName(p.name) || secretValue().MatchString(p.value)) {
			c.secrets = setPair(c.secrets, p)
		} else {
			open = setPair(open, p)
		}
	}
	t.environ(open)
}

// recognised gives a server what hob knows of its engine, and its port.
func (c *cooked) recognised(t *task, env []pair, args []string) {
	if t.section != "servers" {
		return
	}
	if k := recognise(env, args); k != nil {
		t.serve(k)
	}
	c.portOf(t, args)
	if n, _ := t.portNumber(); n > 0 {
		c.entry.Port = n
	}
}

// place is where and on what it ran: GPUs, and a Python environment.
func (c *cooked) place(t *task) {
	if gpuList().MatchString(c.gpus) && t.get("gpus") == nil {
		t.set("gpus", flow(numbers(c.gpus)))
	} else if c.gpus != "" && !gpuList().MatchString(c.gpus) && c.gpus != "all" {
		c.drop("gpus", "it is no list of numbers")
	}
	if c.entry.Host != "" {
		c.drop("host", "another machine: hob starts on this one only")
	}
	if t.section == "servers" && t.get("engine") == nil && t.get("port") == nil {
		c.drop("port", "the command does not show it: say port, so that hob can see when it answers")
	}
	c.python(t)
}

// python puts a virtual environment's programs in front of all others.
func (c *cooked) python(t *task) {
	dir := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(c.path), "/activate"), "/bin"), "/")
	switch {
	case c.env == "" || c.env == "none" || c.env == "system":
		return
	case dir == "" || !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "~/"):
		c.drop("env", fmt.Sprintf("the environment %s %s is not found by its path: activate it before hob up, or put its bin folder in env's PATH", c.env, oneLine(c.path)))
		return
	}
	if rest, home := strings.CutPrefix(dir, "~/"); home {
		dir = ref("HOME") + "/" + rest
	}
	name := "VIRTUAL_ENV"
	if strings.Contains(c.env, "conda") {
		name = "CONDA_PREFIX"
	}
	env := []pair{{"PATH", dir + "/bin:" + ref("PATH:-")}, {name, dir}}
	n := environment(env)
	if old := t.get("env"); old != nil {
		for i := 0; i+1 < len(old.Content); i += 2 {
			if !slices.Contains([]string{"PATH", name}, old.Content[i].Value) {
				n.Content = append(n.Content, old.Content[i], old.Content[i+1])
			}
		}
	}
	t.set("env", n)
}
