// Package pilot is hob's built-in engine: a small, real, deterministic text
// model behind the OpenAI-style routes, in the process shape of a big engine
// (server, engine core, workers). It needs nothing installed, so a recipe can be
// tried before it meets the GPU box, and every example can be tested.
//
// The model is a next-token table that is trained at start on a text of our own
// (corpus.txt): the same prompt always gets the same answer. Each worker holds
// its part of the table, and a completion really asks for every token the
// worker that holds it.
//
// Processes talk over pipes. A child ends because its parent says quit there,
// or because the pipe ends; no process of the pilot sends a signal.
package pilot

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// exitError is the exit code that a command is to end with. Without err, what
// there is to say has been printed already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d: %v", e.code, e.err) }

func (e *exitError) Unwrap() error { return e.err }

// Run is `hob pilot ARGS…`, which stands in recipes and is not for people. It is a
// program of its own: how signals are taken is part of a shape, so it is to be
// run before anything else of hob listens to them. It prints what went wrong and
// returns the exit code.
func Run(args []string) int {
	hob := &cobra.Command{Use: "hob", SilenceErrors: true, SilenceUsage: true}
	hob.CompletionOptions.DisableDefaultCmd = true
	hob.AddCommand(command())
	hob.SetArgs(append([]string{"pilot"}, args...))
	err := hob.Execute()
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{2, err} // what cobra refuses is wrong usage
	}
	if exit.err != nil {
		fmt.Fprintln(os.Stderr, "hob: pilot:", exit.err)
	}
	return exit.code
}

func command() *cobra.Command {
	c := &cobra.Command{
		Use:   "pilot",
		Short: "The built-in engine: a small real model in the process shape of a big one",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(serveCommand(), askCommand(), shapesCommand(), childCommand("core", runCore), childCommand("worker", runWorker))
	return c
}

func serveCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "serve [flags] [-- ENGINE COMMAND LINE]",
		Short: "Serve the model; what stands after -- is what the engine would have been started with",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return fmt.Errorf("serve: unexpected %q: an engine's own arguments stand after --", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			given := append(append(asGiven(c.Flags()), "--"), args...)
			if err := o.settle(c.Flags(), args); err != nil {
				return err
			}
			if o.Launcher && !o.launched {
				return ended(runLauncher(given, o.MuteLauncher))
			}
			return ended(serve(o), nil)
		},
	}
	o.add(c.Flags())
	return c
}

// asGiven is the flags of a command line as they were given.
func asGiven(f *pflag.FlagSet) (args []string) {
	f.Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	return args
}

// ended makes an exit code an error.
func ended(code int, err error) error {
	if err == nil && code != 0 {
		return &exitError{code: code}
	}
	return err
}

func childCommand(role string, run func(title string) error) *cobra.Command {
	var title string
	c := &cobra.Command{
		Use:   role,
		Short: "A " + role + " of hob pilot serve, which starts it",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return run(title) },
	}
	c.Flags().StringVar(&title, "title", role, "what the process calls itself")
	return c
}

func shapesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shapes",
		Short: "List the engines whose shape --shape knows",
		Args:  cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) {
			for _, name := range shapeNames() {
				fmt.Fprintln(c.OutOrStdout(), name)
			}
		},
	}
}
