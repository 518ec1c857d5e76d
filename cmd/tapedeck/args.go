package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
)

// sessionAnd checks for a session and from min to max more arguments.
func sessionAnd(minMore, maxMore int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if n := len(args) - 1; n < minMore || n > maxMore {
			return usageError("%s takes %s; see: %s --help", c.CommandPath(), what, c.CommandPath())
		}
		for _, a := range args[1:] {
			if strings.TrimSpace(a) == "" {
				return usageError("%s takes no empty argument", c.CommandPath())
			}
		}
		return oneSession(c, args[:1])
	}
}

// noArgs, oneSession and the like are cobra's own checks with our words and our
// exit code.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes no argument %q; see: %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	return nil
}

func oneSession(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("%s takes the id of one session; tapedeck ls lists them", c.CommandPath())
	}
	if err := tapedeck.CheckID("the session id", args[0]); err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}
