package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
)

// The answers that run gives without asking, and that it does not.
const (
	permitAllow = "allow"
	permitDeny  = "deny"
	permitAsk   = "ask"
)

func (e *env) permissionsFlag(c *cobra.Command) {
	c.Flags().StringVar(&e.permissions, "permissions", permitAsk,
		"what to say when the agent asks whether it may: allow, deny, or ask (you here, or whoever answers with tapedeck answer)")
}

func (e *env) checkPermissions() error {
	if !slices.Contains([]string{"", permitAllow, permitDeny, permitAsk}, e.permissions) {
		return usageError("--permissions takes allow, deny or ask, not %q", e.permissions)
	}
	return nil
}

// typed returns the option that a line means.
func typed(options []tapedeck.PermissionOption, line string) (string, bool) {
	line = strings.ToLower(strings.TrimSpace(line))
	switch line {
	case "y", "yes":
		return choice(options, permitAllow)
	case "n", "no":
		return choice(options, permitDeny)
	}
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
		return options[n-1].ID, true
	}
	return "", false
}

// choice returns the option that allows or denies, for once if there is one of
// that kind.
func choice(options []tapedeck.PermissionOption, how string) (string, bool) {
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
