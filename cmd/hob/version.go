package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "say which hob this is",
		Args:  most(0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.out, "hob %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
