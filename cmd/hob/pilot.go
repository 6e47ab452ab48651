package main

import (
	"github.com/spf13/cobra"

	"hob/recipes/pilot"
)

// pilotCommand is the built-in engine, for recipes; people have no use for it.
func (a *app) pilotCommand() *cobra.Command { return pilot.Command() }
