package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hob/recipes"
	"hob/recipes/convert"
	"hob/tasks"
)

// writing is where a recipe that was made goes.
type writing struct {
	file  string
	force bool
}

func (w *writing) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&w.file, "output", "o", "", "write the recipe into `FILE` instead of standard output")
	cmd.Flags().BoolVar(&w.force, "force", false, "with -o: replace FILE if it is there")
}

func (a *app) convertCommand() *cobra.Command {
	var to writing
	var from string
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "make a recipe of another tool's file",
		Long: `Make a recipe of what another tool was told: a session of tmuxinator or tmuxp, a
Procfile (foreman, overmind), a configuration of llama-swap, a recipe of
vllm-project/recipes, or a configuration file of vllm serve. FILE - is standard input.

Whose it is shows in its name and content; --from says it: ` + strings.Join(convert.Kinds(), ", ") + `.

Best effort, and said: each construct is taken over, or named as dropped, with
its line, on standard error and in the recipe's first lines. The recipe goes to
standard output or into -o FILE; a file that is there is left as it is without
--force. hob check reads what came out, hob up --rehearse tries it.

With --json an object: kind, file, name, recipe (the text), and kept and dropped,
lists of {line, what, says}.`,
		Example: `  hob convert Procfile -o hob.yaml
  hob check`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("hob convert FILE", fmt.Sprintf("one file is converted at a time, got %d", len(args)))
			}
			return a.convert(args[0], from, to)
		},
	}
	to.flags(cmd)
	cmd.Flags().StringVar(&from, "from", "", "whose file it is: a `KIND` of those above (else its name and content tell)")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(convert.Kinds(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) convert(file, from string, to writing) error {
	if from != "" && !slices.Contains(convert.Kinds(), from) {
		tip := "there are: " + strings.Join(convert.Kinds(), ", ")
		if near := tasks.Near(from, convert.Kinds()); len(near) > 0 {
			tip = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return usage(tip, "there is no kind "+quote(from))
	}
	src, err := source(file, to.file)
	if err != nil {
		return err
	}
	src.From = convert.Kind(from)
	res, err := convert.Convert(src)
	if errors.Is(err, convert.ErrUnsure) {
		return &tasks.Problem{Kind: tasks.ErrUsage, Msg: file + ": " + err.Error(), Tip: "say --from KIND, one of: " + strings.Join(convert.Kinds(), ", ")}
	}
	if err != nil {
		return err
	}
	return a.give(res, to, file)
}

// mostConverted is how much of a file is read; what is larger is refused.
const mostConverted = 2 << 20

// source reads the file, and says where it stands as seen from where the recipe
// will be.
func source(file, to string) (convert.Source, error) {
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(os.Stdin, mostConverted))
		return convert.Source{File: "-", Text: text}, err
	}
	text, err := recipes.ReadInput(file, mostConverted)
	if err != nil {
		return convert.Source{}, &tasks.Problem{Kind: tasks.ErrUsage, Err: err, Tip: "name a file, or - for standard input"}
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return convert.Source{}, err
	}
	src := convert.Source{File: file, Folder: filepath.Base(dir), Text: text, Beside: func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(dir, name))
	}}
	if out, err := filepath.Abs(filepath.Dir(to)); to != "" && err == nil && out != dir {
		src.Away = dir
	}
	return src, sameFile(file, to)
}

// sameFile refuses to write a recipe over what it is made of.
func sameFile(file, to string) error {
	if to == "" {
		return nil
	}
	a, errA := os.Stat(file)
	b, errB := os.Stat(to)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return usage("name another file with -o", to+" is the file that is converted")
	}
	return nil
}

// give writes a recipe that was made, and names what it lacks.
func (a *app) give(res *convert.Result, to writing, from string) error {
	if to.file != "" {
		if err := recipes.Write(to.file, []byte(res.Recipe), to.force); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return &tasks.Problem{Kind: tasks.ErrUsage, Msg: to.file + " is there already", Tip: "name another file, or replace it with --force"}
			}
			return err
		}
	}
	if a.json {
		return a.writeJSON(res)
	}
	if !a.quiet {
		for _, n := range res.Dropped {
			fmt.Fprintln(a.err, shown([]rune(note(from, res.Kind, n))))
		}
	}
	if to.file != "" {
		a.say("wrote %s; hob check reads it, hob up --rehearse tries it", to.file)
		return nil
	}
	_, err := io.WriteString(a.out, res.Recipe)
	return err
}

// note is a line as compilers write them: FILE:LINE: what became of which construct.
func note(file string, kind convert.Kind, n convert.Note) string {
	verb := "dropped"
	if kind == convert.Live {
		verb = "left out"
	}
	if n.Line > 0 {
		file = fmt.Sprintf("%s:%d", file, n.Line)
	}
	return fmt.Sprintf("%s: %s %s: %s", file, verb, n.What, n.Says)
}
