package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tapedeck/tapedeck"
)

// sessionAnd checks for a session id and minMore to maxMore other arguments; usage
// describes all of them.
func sessionAnd(minMore, maxMore int, usage string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if n := len(args) - 1; n < minMore || n > maxMore {
			return usageError("%s takes %s; see: %s --help", c.CommandPath(), usage, c.CommandPath())
		}
		for _, a := range args[1:] {
			if strings.TrimSpace(a) == "" {
				return usageError("%s does not take an empty argument", c.CommandPath())
			}
		}
		return oneSession(c, args[:1])
	}
}

// noArgs, oneSession and sessionAnd check arguments like the functions of cobra,
// with sentences and the exit code of this program.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes no argument %q; see: %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	return nil
}

// both checks arguments with two functions.
func both(first, second cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return cmp.Or(first(c, args), second(c, args)) }
}

// onlyCommands refuses an argument of a command that has others below it, and names the one
// that may be meant.
func onlyCommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // letters that may be wrong
	meant := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		meant = fmt.Sprintf("; is it %s %s?", c.CommandPath(), near[0])
	}
	return usageError("there is no command %q%s; see: %s --help", args[0], meant, c.CommandPath())
}

// requiredFlags refuses a command without a flag that it needs, like cobra, with a sentence
// and the exit code of this program.
func requiredFlags(c *cobra.Command) (err error) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required && !f.Changed && err == nil {
			err = usageError("%s needs --%s: %s; see: %s --help", c.CommandPath(), f.Name, f.Usage, c.CommandPath())
		}
	})
	return err
}

func oneSession(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("%s takes one session id; list sessions with: tapedeck ls", c.CommandPath())
	}
	if err := tapedeck.CheckID("the session id", args[0]); err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

// noEmptyFlag refuses a flag with an empty value, such as that of a variable that is not set:
// without the value, --auth would leave out the access control.
func noEmptyFlag(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		switch v := f.Value.(type) {
		case pflag.SliceValue:
			values = v.GetSlice()
		default:
			if v.Type() != "string" {
				return
			}
		}
		if slices.Contains(values, "") {
			err = usageError("--%s has an empty value; leave the flag out, or give it a value", f.Name)
		}
	})
	return err
}

// checkOwner refuses an owner that no token can have as its subject.
func checkOwner(owner string) error {
	if owner == "" {
		return nil
	}
	if err := tapedeck.CheckID("the owner", owner); err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

func oneFolder(c *cobra.Command, args []string) error {
	if len(args) != 1 || strings.TrimSpace(args[0]) == "" {
		return usageError("%s takes one folder; see: %s --help", c.CommandPath(), c.CommandPath())
	}
	return nil
}
