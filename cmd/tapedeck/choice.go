package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
)

// The values of --permissions.
const (
	permitAllow = "allow"
	permitDeny  = "deny"
	permitAsk   = "ask"
)

func (e *env) permissionsFlag(c *cobra.Command) {
	c.Flags().StringVar(&e.permissions, "permissions", permitAsk,
		"how to answer when the agent asks for permission: allow, deny, or ask (here, or through tapedeck answer)")
}

func (e *env) checkPermissions() error {
	if !slices.Contains([]string{"", permitAllow, permitDeny, permitAsk}, e.permissions) {
		return usageError("--permissions takes allow, deny or ask, not %q", e.permissions)
	}
	return nil
}

// typedOption returns the option that a typed line stands for.
func typedOption(options []tapedeck.PermissionOption, line string) (string, bool) {
	line = strings.ToLower(strings.TrimSpace(line))
	switch line {
	case "y", "yes":
		return chooseOption(options, permitAllow)
	case "n", "no":
		return chooseOption(options, permitDeny)
	}
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
		return options[n-1].ID, true
	}
	return "", false
}

// chooseOption returns the option that allows or denies. It prefers an option that counts
// once.
func chooseOption(options []tapedeck.PermissionOption, how string) (string, bool) {
	kinds := map[string][]string{permitAllow: {"allow_once", "allow_always"}, permitDeny: {"reject_once", "reject_always"}}[how]
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return o.ID, true
			}
		}
	}
	return "", false
}
