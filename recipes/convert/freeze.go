package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Session is a tmux session as it was seen: what runs in each pane, and what
// could not be looked at.
type Session struct {
	Name    string
	Host    string // name of the host, which tmux gives panes as their title
	Shell   string // the program that a shells: entry without a command is
	Windows []LiveWindow
	Notes   []string // what could not be seen of the session as a whole
}

// LiveWindow is a window of it.
type LiveWindow struct {
	Name   string
	Layout string // tmux's own text for its cells
	Front  bool   // the one that the session shows
	Panes  []LivePane
}

// LivePane is a pane, and the job in its foreground.
type LivePane struct {
	ID         string
	Title      string // whatever a program or a person has set it to
	Task       string // hob's own name for it; "" in somebody else's tmux
	Focus      bool   // it has its window's cursor
	Dead       bool   // its program has ended, and tmux keeps showing it
	Dir        string // that the job is in; "" when it cannot be read
	Args       []string
	Prompt     bool       // it is a shell, waiting for a person
	Others     [][]string // the rest of a pipeline
	Background [][]string // jobs that the pane's shell runs behind it
	Ports      []int      // that the job, and what it started, listens on
	Trouble    string     // why its process could not be looked at
}

// Freeze makes a recipe of a session. Nothing in it is changed.
func Freeze(s Session) (*Result, error) {
	d := &draft{kind: Live, names: map[string]bool{}}
	r := &reader{file: s.Name}
	if d.name = slug(s.Name); d.name == "" {
		d.name = "frozen"
	}
	if d.name != s.Name {
		r.drop(0, "session", fmt.Sprintf("its name %q, which hob cannot have; it is %s now", shortened(s.Name), d.name))
	}
	for _, n := range s.Notes {
		r.drop(0, "session", n)
	}
	for i, w := range s.Windows {
		d.liveWindow(r, s, w, i)
	}
	d.head = append(d.head,
		"Environments are not copied, for they hold secrets: the programs get that of hob up, and env or env_file.",
		"Arguments are, but for what looks like a secret: see that none of them is one.")
	d.title(fmt.Sprintf("Frozen from the tmux session %q by hob freeze.", shortened(s.Name)))
	return d.result(s.Name, r)
}

// liveWindow is a window of the layout, and its tasks.
func (d *draft) liveWindow(r *reader, s Session, live LiveWindow, index int) {
	w := window{}
	panes := slices.DeleteFunc(slices.Clone(live.Panes), func(p LivePane) bool {
		if p.Dead {
			r.drop(0, "pane "+p.ID, "its program has ended")
		}
		return p.Dead
	})
	for _, p := range panes {
		t := d.livePane(r, s, live, p, len(panes) == 1)
		w.panes = append(w.panes, t.name)
		if p.Focus && len(panes) > 1 {
			w.focus = t.name
		}
	}
	if len(w.panes) == 0 {
		return
	}
	name, same := windowName(live.Name, w.panes[0])
	if w.name = name; !same {
		r.drop(0, "window "+shortened(live.Name), fmt.Sprintf("its name: tmux would take it apart; it is %q now", w.name))
	}
	if live.Front && index > 0 {
		r.drop(0, "window "+shortened(live.Name), "that it is the one in front: hob attach RUN lands in the first; hob attach TASK goes to any")
	}
	if len(panes) > 1 {
		split, exact := splitOf(live.Layout)
		switch {
		case split == "":
			r.drop(0, "window "+shortened(live.Name), "its layout, which cannot be read; it is tiled now")
		case !exact || len(panes) < len(live.Panes):
			r.drop(0, "window "+shortened(live.Name), "the sizes of its panes; their arrangement is most like "+split+", which it is now")
		}
		w.split = split
	}
	d.windows = append(d.windows, w)
}

// livePane is the task of a pane: a server when it listens or is known to, else a
// shell, with the command that runs in it.
func (d *draft) livePane(r *reader, s Session, w LiveWindow, p LivePane, alone bool) *task {
	k := recognise(nil, p.Args)
	section := "shells"
	if p.Trouble == "" && !p.Prompt && (k != nil || len(p.Ports) > 0) && !secretInText(p.Args) {
		section = "servers"
	}
	t := d.add(section, liveName(s, w, p, alone))
	if p.Dir != "" {
		t.set("dir", literal(p.Dir))
	} else if p.Trouble == "" {
		r.drop(0, "pane "+p.ID, "its folder: could not look")
	}
	if title := oneLine(p.Title); title != "" && title != s.Host && title != t.name && !secretText(title) {
		t.about = append(t.about, "Its title was: "+shortened(title))
	}
	d.liveCommand(r, s, p, t)
	if section == "servers" {
		livePort(r, p, t, k)
	}
	if len(p.Others) > 0 {
		r.drop(0, "pane "+p.ID, "what its command was piped to: "+listed(p.Others))
	}
	if len(p.Background) > 0 {
		r.drop(0, "pane "+p.ID, "what its shell ran in the background: "+listed(p.Background))
	}
	return t
}

func (d *draft) liveCommand(r *reader, s Session, p LivePane, t *task) {
	switch {
	case p.Trouble != "":
		r.drop(0, "pane "+p.ID, "what runs in it: could not look: "+p.Trouble)
		t.about = append(t.about, "What ran here could not be looked at: "+p.Trouble)
	case p.Prompt:
		if args := plainShell(p.Args); len(args) > 1 || base(args[0]) != base(s.Shell) {
			secretless(r, p, t, args)
		}
	default:
		secretless(r, p, t, p.Args)
		if retitled(p.Args) {
			r.drop(0, "pane "+p.ID, "its command: the program has written something else over it")
			t.about = append(t.about, "The program had given itself this title: write its command here.")
		}
	}
}

// secretless is the command of a pane without what looks like a secret in it: that
// the recipe takes from the environment of hob up, and is no recipe without it.
func secretless(r *reader, p LivePane, t *task, args []string) {
	if secretInText(args) {
		r.drop(0, "pane "+p.ID, "its command: what looks like a secret stands in its text")
		t.about = append(t.about, "What ran here had what looks like a secret in its text: write it by hand, the secret in env or env_file.")
		return
	}
	m := moveSecrets(args, "FROZEN_")
	if m.text == "" {
		t.set("command", argv(args))
		return
	}
	var env []pair
	for _, v := range m.vars {
		env = append(env, pair{v.name, "${" + v.name + ":?what looked like a secret in the arguments was not copied}"})
		r.drop(0, "pane "+p.ID, "what looks like a secret in its arguments: set "+v.name+" to it for hob up, or write it into an env_file")
	}
	t.set("command", literal(m.text)).set("shell", yes()).set("env", mappingOf(env))
}

// plainShell is a shell's command line without the mark of a login shell.
func plainShell(args []string) []string {
	if len(args) == 0 {
		return []string{"/bin/sh"}
	}
	args = slices.Clone(args)
	args[0] = strings.TrimPrefix(args[0], "-")
	return args
}

// retitled reports whether a command line is a title: one word with spaces in it.
func retitled(args []string) bool {
	return len(args) == 1 && strings.ContainsAny(args[0], " :") && !strings.HasPrefix(args[0], "/")
}

// livePort is the port that the server is asked at: the one that its command
// names, else the lowest.
func livePort(r *reader, p LivePane, t *task, k *known) {
	if k != nil {
		t.serve(k)
	}
	ports := slices.Clone(p.Ports)
	slices.Sort(ports)
	ports = slices.Compact(ports)
	if len(ports) == 0 {
		return
	}
	port := ports[0]
	for _, n := range ports {
		if k != nil && n == k.port || namesPort(p.Args, n) {
			port = n
			break
		}
	}
	t.set("port", number(port))
	if len(ports) > 1 {
		r.drop(0, "pane "+p.ID, fmt.Sprintf("ports beside %d: %v", port, slices.DeleteFunc(ports, func(n int) bool { return n == port })))
	}
}

func namesPort(args []string, port int) bool {
	number := regexp.MustCompile(fmt.Sprintf(`(^|[^0-9])%d($|[^0-9])`, port))
	return slices.ContainsFunc(args[min(1, len(args)):], number.MatchString)
}

// liveName: hob's own name for the pane, a title that a person gave it, or what
// its window and program are called.
func liveName(s Session, w LiveWindow, p LivePane, alone bool) string {
	if p.Task != "" {
		return p.Task
	}
	given := ""
	if slug(p.Title) == p.Title && p.Title != slug(s.Host) && !strings.HasPrefix(s.Host, p.Title+".") {
		given = p.Title
	}
	one := pane{name: given}
	return one.called(w.Name, alone, p.programs())
}

// programs is the command as a name is made of it: a script rather than its
// interpreter.
func (p *LivePane) programs() []string {
	if p.Prompt || p.Trouble != "" || len(p.Args) == 0 {
		return nil
	}
	name := base(p.Args[0])
	if engine := engineOf(p.Args); engine != "" {
		name = engine
	} else if isPython(name) && len(p.Args) > 1 && !strings.HasPrefix(p.Args[1], "-") {
		name = strings.TrimSuffix(base(p.Args[1]), ".py")
	}
	return []string{firstWord(name)}
}

func listed(commands [][]string) string {
	var all []string
	for _, c := range commands {
		all = append(all, shortened(strings.Join(Hide(c), " ")))
	}
	return strings.Join(all, "; ")
}
