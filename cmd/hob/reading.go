package main

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"hob/recipes"
	"hob/tasks"
)

// reading is how the command line asks for a recipe to be read.
type reading struct {
	rehearse bool
	profiles []string
	pairs    []string // NAME=VALUE
}

// flags adds what all verbs that read recipes take.
func (r *reading) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&r.rehearse, "rehearse", false, "let the built-in pilot stand in for every engine")
	r.variation(cmd)
}

// variation adds what makes another recipe of the same file.
func (r *reading) variation(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&r.pairs, "set", nil, "give one of the recipe's vars another value: `NAME=VALUE`; once for each")
	cmd.Flags().StringArrayVar(&r.profiles, "profile", nil, "lay the profile `NAME` of the recipe over it; several go one over the other")
}

// set are the variables that were set; the last of one name counts.
func (r *reading) set() (map[string]string, error) {
	set := map[string]string{}
	for _, pair := range r.pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usage("write it --set NAME=VALUE", "--set "+quote(pair)+" is not NAME=VALUE")
		}
		set[name] = value
	}
	return set, nil
}

// find is the file of a recipe: a path, a name, or "" for ./hob.yaml.
func (a *app) find(arg string) (string, error) {
	file, err := recipes.Find(arg, a.recipeDirs())
	if errors.Is(err, recipes.ErrNoRecipe) {
		return "", &tasks.Problem{Kind: tasks.ErrUsage, Err: err, Tip: "hob recipes lists those that have a name; hob recipes init pilot writes one to begin with"}
	}
	return file, err
}

// load finds and reads a recipe.
func (a *app) load(arg string, how reading) (*recipes.Recipe, error) {
	file, err := a.find(arg)
	if err != nil {
		return nil, err
	}
	set, err := how.set()
	if err != nil {
		return nil, err
	}
	return a.loadFile(file, recipes.Options{Rehearse: how.rehearse, Profiles: how.profiles, Set: set})
}

func (a *app) loadFile(file string, o recipes.Options) (*recipes.Recipe, error) {
	self, err := program()
	if err != nil {
		return nil, err
	}
	o.Getenv, o.EngineDir, o.Self = a.getenv, a.engineDir(), self
	return unlessEnding(a, func() (*recipes.Recipe, error) { return recipes.Load(file, o) })
}

// unlessEnding reads what may keep one waiting, as a pipe does, or a mount whose server
// is gone: the first signal ends that.
func unlessEnding[T any](a *app, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-a.ending:
		var none T
		return none, tasks.ErrInterrupted
	}
}

// recipeAndTasks reads [RECIPE] [TASK...]. A first word that is no recipe names
// tasks of ./hob.yaml, if that has any.
func (a *app) recipeAndTasks(args []string, how reading) (*recipes.Recipe, []string, error) {
	if len(args) == 0 {
		r, err := a.load("", how)
		return r, nil, err
	}
	r, err := a.load(args[0], how)
	if !errors.Is(err, recipes.ErrNoRecipe) {
		return r, args[1:], err
	}
	here, hereErr := a.load("", how)
	if errors.Is(hereErr, recipes.ErrNoRecipe) {
		return nil, nil, err
	}
	if hereErr != nil {
		return nil, nil, hereErr
	}
	if _, noTask := here.Select(args[0]); noTask != nil {
		return nil, nil, &tasks.Problem{Kind: tasks.ErrUsage, Err: fmt.Errorf("%w; and %w", err, noTask), Tip: hint(err)}
	}
	return here, args, nil
}

// reload reads the recipe of a run again: as it was asked for then, but for what
// is asked for otherwise now.
func (a *app) reload(how reading) tasks.Loader {
	return func(run *tasks.Run) (*recipes.Recipe, error) {
		set, err := how.set()
		if err != nil {
			return nil, err
		}
		all := maps.Clone(run.Set)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, set)
		if len(how.profiles) > 0 {
			run.Profiles = how.profiles
		}
		run.Set = all
		return a.loadFile(run.Recipe, recipes.Options{Rehearse: run.Rehearse, Profiles: run.Profiles, Set: run.Set, Dir: run.Dir})
	}
}
