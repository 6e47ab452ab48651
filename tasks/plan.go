package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hob/recipes"
	"hob/tmux"
)

// Planned is what an `up` would do with one task. Its JSON is a contract. Values
// of the environment are nowhere in it.
type Planned struct {
	Run     string   `json:"run"`
	Task    string   `json:"task"`
	Kind    string   `json:"kind"`
	Engine  string   `json:"engine,omitempty"`
	Does    string   `json:"does"`
	After   []string `json:"after"`   // what it would wait for
	Command []string `json:"command"` // the exact argv
	Dir     string   `json:"dir"`
	Env     []string `json:"env"` // names of what the recipe and hob set, over the caller's
	Port    *int     `json:"port"`
	GPUs    string   `json:"gpus,omitempty"`
	Ready   string   `json:"ready,omitempty"`
	Stop    string   `json:"stop,omitempty"`
	Restart string   `json:"restart,omitempty"`
	// The hooks, as they would be run.
	Before     []string `json:"before,omitempty"`
	AfterReady []string `json:"after_ready,omitempty"`
	AfterStop  []string `json:"after_stop,omitempty"`

	Tmux []string `json:"tmux"` // the exact argv that would make its pane; an id that does not exist yet is in <>
}

// planned is what a dry run would do.
func (u *upRun) planned(ctx context.Context) []Outcome {
	var outs []Outcome
	panes := u.plannedPanes(ctx)
	for _, t := range u.tasks {
		o := Outcome{Name: Name{u.dir.Name, t.Name}, State: t.was.State, Port: t.port, Did: "would start"}
		switch t.act {
		case leave:
			o.Did = "would be left alone"
		case settle:
			o.Did = "would settle the earlier stop, then start"
		}
		o.Plan = u.planOf(t, o.Did)
		if t.act != leave {
			o.Plan.Tmux = panes[t.Name]
		}
		outs = append(outs, o)
	}
	return outs
}

func (u *upRun) planOf(t *upTask, does string) *Planned {
	late := u.late(t)
	argv, vars := t.BindLate(late)
	p := &Planned{Run: u.dir.Name, Task: t.Name, Kind: t.Kind, Engine: t.Engine, Does: does, After: []string{},
		Command: argv, Dir: t.Dir, Env: []string{}, GPUs: t.GPUs, Tmux: []string{},
		Ready: readyWords(t.BindReadyLate(late), t.port) + keyWords(t.Ready, argv, u.environment(t)), Stop: stopWords(t.Stop), Restart: restartWords(t.Task)}
	before, afterReady, afterStop := t.BindHooks(late)
	p.Before, p.AfterReady, p.AfterStop = hookArgs(before), hookArgs(afterReady), hookArgs(afterStop)
	if t.gpus != "" {
		p.GPUs = t.gpus
	}
	if t.port > 0 {
		p.Port = &t.port
	}
	for _, d := range t.DependsOn {
		p.After = append(p.After, d.Task+" is "+d.Condition)
	}
	for _, v := range vars {
		p.Env = append(p.Env, v.Name)
	}
	p.Env = append(p.Env, "HOB_RUN", "HOB_TASK", "HOB_RUN_ID", "HOB_HOME", "SPT_NOENV")
	return p
}

func hookArgs(h *recipes.Hook) []string {
	if h == nil {
		return nil
	}
	return h.Command
}

// plannedPanes are the tmux commands that would make the panes, one after the
// other in start order. Ids that tmux would give are not known yet.
func (u *upRun) plannedPanes(ctx context.Context) map[string][]string {
	lines := map[string][]string{}
	if u.tmux == nil {
		return lines
	}
	session, have := u.panesNow(ctx)
	plan := planWindows(u.recipe)
	for _, t := range u.tasks {
		if t.act == leave {
			continue
		}
		s := plan.spawn(t.Name, have)
		s.Session, s.New = session, session == ""
		if s.New {
			s.Session, session = u.dir.Name, "<session>"
		}
		s.Argv = []string{u.Self, "keeper", t.dir.SpecPath()}
		lines[t.Name] = u.tmux.SpawnLine(s)
		have[t.Name] = tmux.Pane{ID: "<pane of " + t.Name + ">"}
	}
	return lines
}

// panesNow are the session and the panes that the run has already.
func (u *upRun) panesNow(ctx context.Context) (session string, have map[string]tmux.Pane) {
	have = map[string]tmux.Pane{}
	panes, err := u.tmux.Panes(ctx)
	if err != nil { // mostly there is no server yet
		return "", have
	}
	for _, pane := range panes {
		if pane.SessionName == u.dir.Name {
			session = pane.Session
		}
	}
	for _, t := range u.tasks {
		rec, err := t.dir.ReadTask()
		if err != nil || rec.Pane == nil {
			continue
		}
		if i := slices.IndexFunc(panes, func(x tmux.Pane) bool { return x.ID == rec.Pane.Pane && x.PID == rec.Pane.PID }); i >= 0 {
			have[t.Name] = panes[i]
		}
	}
	return session, have
}

// readyWords is how a task shows that it answers, in words; "" when up is ready.
func readyWords(r *recipes.Ready, port int) string {
	if r == nil {
		return ""
	}
	var what string
	switch {
	case r.HTTP != "":
		what = "GET " + r.HTTP + expectWords(r)
	case r.Completion:
		what = "completes a prompt"
	case r.Log != "":
		what = fmt.Sprintf("the log shows %q", r.Log)
	case len(r.Exec) > 0:
		what = "ends with 0: " + strings.Join(r.Exec, " ")
	default:
		what = fmt.Sprintf("port %d takes a connection", port)
	}
	return fmt.Sprintf("%s, within %s", what, r.Timeout)
}

// keyWords say where the key comes from that readiness asks with, and which headers
// go with it.
func keyWords(r *recipes.Ready, argv, env []string) string {
	words := ""
	if _, from := apiKey(r, argv, env); from != "" {
		words = ", with the key of " + from
	}
	if r != nil && len(r.Names) > 0 {
		words += ", with the headers " + strings.Join(r.Names, ", ")
	}
	return words
}

func expectWords(r *recipes.Ready) string {
	words := ""
	if r.Status != 0 {
		words += fmt.Sprintf(" answers %d", r.Status)
	}
	if r.Body != "" {
		words += fmt.Sprintf(" shows %q", r.Body)
	}
	for _, f := range r.JSON {
		words += " has " + f.Path
		if f.Value != nil {
			words += " = " + *f.Value
		}
	}
	return words
}

func stopWords(s recipes.Stop) string {
	words := fmt.Sprintf("%s, %s to follow, TERM to the rest, %s, then KILL", s.Signal, s.Grace, s.TermGrace)
	if s.Detached == "report" {
		words += "; what has detached is only named"
	}
	if len(s.Spare) > 0 {
		words += "; spares " + strings.Join(s.Spare, ", ")
	}
	return words
}

func restartWords(t recipes.Task) string {
	if t.Restart.Policy == "" || t.Restart.Policy == "no" {
		return ""
	}
	return fmt.Sprintf("%s, up to %d times in a row, after %s and longer", t.Restart.Policy, t.Restart.Max, t.Restart.Backoff)
}
