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
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ExitError is how a run of the pilot tells the exit code that it is to end
// with. Without Err, what there is to say has been printed already.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("the pilot ended with code %d", e.Code)
}

func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the code that the process should exit with.
func (e *ExitError) ExitCode() int { return e.Code }

// Run is `hob pilot ARGS…` as a program of its own: it prints what went wrong and
// returns the exit code.
func Run(args []string) int {
	hob := &cobra.Command{Use: "hob", SilenceErrors: true, SilenceUsage: true}
	hob.CompletionOptions.DisableDefaultCmd = true
	hob.AddCommand(Command())
	hob.SetArgs(append([]string{"pilot"}, args...))
	err := hob.Execute()
	if err == nil {
		return 0
	}
	var exit *ExitError
	if !errors.As(err, &exit) {
		exit = &ExitError{Code: 2, Err: err} // what cobra refuses is wrong usage
	}
	if exit.Err != nil {
		fmt.Fprintln(os.Stderr, "hob: pilot:", exit.Err)
	}
	return exit.Code
}

// Command is `hob pilot`, which stands in recipes and is not for people: it is
// hidden. An error that is an *ExitError needs no further word.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:    "pilot",
		Short:  "The built-in engine: a small real model in the process shape of a big one",
		Hidden: true,
		Args:   cobra.NoArgs,

		SilenceErrors: true,
		SilenceUsage:  true,
		// How signals are taken is part of a shape: what hob does with them ends here.
		PersistentPreRun: func(*cobra.Command, []string) {
			signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		},
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
				return ended(runLauncher(given))
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
		return &ExitError{Code: code}
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
			for _, name := range Shapes() {
				fmt.Fprintln(c.OutOrStdout(), name)
			}
		},
	}
}
