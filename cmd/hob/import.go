package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hob/recipes"
	"hob/recipes/convert"
	"hob/tasks"
)

// imported is what `hob import --json` writes.
type imported struct {
	File    string          `json:"file"`
	Entries []importedEntry `json:"entries"`
	Dropped []convert.Note  `json:"dropped"`
}

type importedEntry struct {
	convert.Entry
	Now  tasks.LegacyFound `json:"now"`
	File string            `json:"file"` // the recipe's; "" where there is none
	Did  string            `json:"did"`  // wrote, would write, is there already, left as it is
}

func (a *app) importCommand() *cobra.Command {
	var folder, socket string
	cmd := &cobra.Command{
		Use:   "import [-o FOLDER] FILE",
		Short: "read another tool's cookbook_state.json: what of it still runs, and recipes of it",
		Long: `Read a cookbook_state.json: list what of it still runs, and make a recipe of each
task and preset: FOLDER/NAME/hob.yaml. A file that is there is left as it is.

The file holds neither pids nor start tokens, so it proves nothing, and nothing is
ever signalled for it: a task is gone (no tmux session has exactly its name), foreign
(a number it records is another process's), or unverifiable. The tmux server is only
read. What looks like it by command line or port is named; hob adopt takes what you
know to be yours.

Secrets in the commands (HF_TOKEN, --api-key, …) are not shown; they are moved into
secrets.env beside the recipe, for you alone to read. What cannot be taken over is
named as dropped. Off a terminal: name, type, what it was, what it is now, pane, pid,
port, recipe, why.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("hob import cookbook_state.json", fmt.Sprintf("one file is imported at a time, got %d", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.viewer("import")
			if err != nil {
				return err
			}
			state, err := readState(args[0])
			if err != nil {
				return err
			}
			found, lookErr := m.LookLegacy(cmd.Context(), socket, legacies(state.Entries))
			if found == nil {
				return lookErr
			}
			got := imported{File: args[0], Entries: []importedEntry{}, Dropped: state.Dropped}
			errs := []error{lookErr}
			for i, e := range state.Entries {
				one := importedEntry{Entry: e, Now: hidden(found[i])}
				errs = append(errs, a.makeRecipe(&one, folder))
				got.Entries = append(got.Entries, one)
			}
			return join(a.importedAll(got), join(errs...))
		},
	}
	cmd.Flags().StringVarP(&folder, "output", "o", "imported", "the `FOLDER` that the recipes are written to (else ./imported)")
	cmd.Flags().StringVarP(&socket, "socket", "S", "", "the path of the `SOCKET` of the tmux server that it started them in (else $TMUX, else the default one)")
	a.dryRunFlag(cmd)
	a.jsonFlag(cmd)
	return cmd
}

// mostImported is how much of a file is read.
const mostImported = 64 << 20

// readState reads the file. One that cannot be trusted is named, and exit 4.
func readState(file string) (*convert.State, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &tasks.Problem{Kind: tasks.ErrUsage, Err: err, Tip: "name the cookbook_state.json, wherever the other tool keeps it"}
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("it is no file")
	case err == nil && info.Size() > mostImported:
		err = fmt.Errorf("it is longer than %d bytes", mostImported)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, &tasks.RecordError{Path: file, Kind: tasks.Unreadable, Err: err}
	}
	state, err := convert.ReadCookbook(file, text)
	if err == nil {
		return state, nil
	}
	kind := tasks.Torn
	switch {
	case errors.Is(err, convert.ErrNotOne):
		kind = tasks.Foreign
	case errors.Is(err, convert.ErrNewState):
		kind = tasks.Newer
	}
	return nil, &tasks.RecordError{Path: file, Kind: kind, Err: err}
}

func legacies(entries []convert.Entry) []tasks.Legacy {
	list := make([]tasks.Legacy, len(entries))
	for i, e := range entries {
		list[i] = tasks.Legacy{Session: e.ID, Host: e.Host, PID: e.PID, Start: e.Start, Args: e.Args, Port: e.Port}
	}
	return list
}

// hidden is what was found, without the secrets in command lines.
func hidden(f tasks.LegacyFound) tasks.LegacyFound {
	f.Args = convert.Hide(f.Args)
	for i := range f.Lookalikes {
		f.Lookalikes[i].Args = convert.Hide(f.Lookalikes[i].Args)
	}
	return f
}

// makeRecipe writes the recipe of an entry, and never over a file.
func (a *app) makeRecipe(e *importedEntry, folder string) error {
	if e.Recipe == nil {
		return nil
	}
	dir := filepath.Join(folder, e.Recipe.Name)
	e.File = filepath.Join(dir, "hob.yaml")
	if same(e.File, e.Recipe.Text) {
		e.Did = "is there already"
		return nil
	}
	if _, err := os.Lstat(e.File); err == nil {
		e.Did = "left as it is"
		return &tasks.Problem{Msg: e.File + " is there already, and differs", Tip: "name another folder with -o"}
	}
	if e.Did = "would write"; a.dryRun {
		return nil
	}
	e.Did = "not written"
	if err := a.writeRecipe(*e.Recipe, dir, e.File); err != nil {
		return fmt.Errorf("%s: %w", e.What, err)
	}
	e.Did = "wrote"
	return nil
}

func same(file, text string) bool {
	have, err := os.ReadFile(file)
	return err == nil && string(have) == text
}

// writeRecipe writes the secrets first: the recipe is checked with them beside it,
// as hob check does, and is there only when it is right.
func (a *app) writeRecipe(r convert.Made, dir, file string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	secrets := filepath.Join(dir, convert.SecretsFile)
	if r.Secrets != "" && !same(secrets, r.Secrets) {
		if err := writeSecret(secrets, r.Secrets); err != nil {
			return err
		}
	}
	if _, err := recipes.LoadText(file, []byte(r.Text), recipes.Options{Getenv: a.getenv, EngineDir: a.engineDir()}); err != nil {
		return err
	}
	return recipes.Write(file, []byte(r.Text), false)
}

// writeSecret makes a file that only its owner reads; one that is there is left.
func writeSecret(file, text string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteString(text)
	return err
}

// importedAll shows what was found and made.
func (a *app) importedAll(got imported) error {
	if a.json {
		return a.writeJSON(got)
	}
	if !a.quiet {
		for _, n := range droppedOf(got) {
			fmt.Fprintln(a.err, shown([]rune(note(got.File, "", n))))
		}
	}
	err := a.table([]string{"NAME", "TYPE", "WAS", "NOW", "PANE", "PID", "PORT", "RECIPE", "WHY"}, importedRows(got.Entries, a.outTTY))
	if a.outTTY {
		a.advise(got.Entries)
	}
	return err
}

func droppedOf(got imported) []convert.Note {
	all := got.Dropped
	for _, e := range got.Entries {
		if e.Recipe == nil {
			continue
		}
		for _, n := range e.Recipe.Dropped {
			n.What = e.What + " " + n.What
			all = append(all, n)
		}
	}
	return all
}

func importedRows(entries []importedEntry, people bool) [][]string {
	var rows [][]string
	for _, e := range entries {
		row := []string{e.Name, e.Kind, e.Was, string(e.Now.Verdict), e.Now.Pane, number(e.Now.PID), "", recipeCell(e), e.Now.Why}
		if e.Kind == "preset" {
			row[3], row[8] = "", ""
		}
		if e.Port > 0 {
			row[6] = fmt.Sprint(e.Port)
		}
		if people && !e.Since.IsZero() {
			row[2] += " " + ago(time.Since(e.Since))
		}
		for i := range row {
			row[i] = plain(row[i])
		}
		rows = append(rows, row)
	}
	return rows
}

func recipeCell(e importedEntry) string {
	switch e.Did {
	case "", "wrote":
		return e.File
	}
	return e.File + " (" + e.Did + ")"
}

// advise says what looks like the entries, where secrets went, and what next.
func (a *app) advise(entries []importedEntry) {
	for _, e := range entries {
		for _, l := range e.Now.Lookalikes {
			a.say("  looks like %s: %d %s (%s)", plain(e.Name), l.PID, plain(strings.Join(l.Args, " ")), strings.Join(l.Why, ", "))
		}
		if e.Now.Pane != "" {
			a.say("  if it is yours: hob adopt -S %s %s", e.Now.Socket, e.Now.Pane)
		}
		if e.Recipe != nil && e.Recipe.Moved > 0 {
			a.say("  %d secrets of %s stand in %s, for you alone to read", e.Recipe.Moved, plain(e.Name), filepath.Join(filepath.Dir(e.File), convert.SecretsFile))
		}
	}
}
