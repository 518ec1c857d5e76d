package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
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

// answered prints the answer.
func (t *transcript) answered(e *tapedeck.Event) error {
	var a tapedeck.Choice
	if json.Unmarshal(e.Data, &a) != nil {
		return nil //nolint:nilerr // as in print
	}
	if a.Option == "" {
		return t.line("    %s", t.paint(dim, "nobody answered"))
	}
	return t.line("    %s", t.paint(dim, "→ "+brief(visible(a.Option), t.rest(""))))
}

func newPermissions(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "permissions SESSION",
		Short: "List what agents are asking",
		Long: `Permissions lists what agents in a session are asking and nobody has answered,
each with the command, the changes and the files that it is about. tapedeck answer
answers.`,
		Example: `  tapedeck permissions ses_01J…`,
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return e.reading(c.Context(), func(conn *connection) error {
				raw, err := conn.Permissions(c.Context(), args[0])
				if err != nil {
					return err
				}
				return e.printPermissions(raw)
			})
		},
	}
}

func (e *env) printPermissions(raw json.RawMessage) error {
	var all []struct {
		Status tapedeck.Status
		Offset int64
		tapedeck.Question
	}
	var each []json.RawMessage
	if json.Unmarshal(raw, &all) != nil || json.Unmarshal(raw, &each) != nil {
		return tapedeck.Errorf(tapedeck.Internal, "the server's answer cannot be read")
	}
	for i, p := range all {
		switch {
		case p.Status != view.PermissionOpen:
		case e.json:
			if err := e.printJSON(each[i]); err != nil {
				return err
			}
		default:
			if err := e.printPermission(&p.Question, p.Offset); err != nil {
				return err
			}
		}
	}
	return nil
}

// printPermission prints what an agent asks, with all that is to be allowed.
func (e *env) printPermission(q *tapedeck.Question, at int64) error {
	var b strings.Builder
	message := brief(visible(q.Message), 100)
	fmt.Fprintf(&b, "%s  at %d  %s  (%s)\n", visible(q.ID), at, message, optionIDs(q.Options))
	if message != q.Message {
		for line := range strings.Lines(visible(q.Message)) {
			fmt.Fprintf(&b, "  %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	if q.Action != nil {
		for _, l := range actionLines(q.Message, q.Action) {
			fmt.Fprintf(&b, "  %s\n", l.text)
		}
	}
	for _, o := range q.Options {
		fmt.Fprintf(&b, "  %s: %s\n", visible(o.ID), optionText(&o))
	}
	_, err := io.WriteString(e.stdout, b.String())
	return err
}

func newAnswer(e *env) *cobra.Command {
	var at int64
	c := &cobra.Command{
		Use:   "answer SESSION PERMISSION OPTION",
		Short: "Answer what an agent is asking",
		Long: `Answer gives one of the options as the answer to what an agent is asking;
tapedeck permissions lists both. The first answer counts. With --at the answer
counts only for the question at that offset, which is the one you have seen.`,
		Example: `  tapedeck answer ses_01J… perm_01J… allow_once --at 42`,
		Args:    sessionAnd(2, 2, "a session, a permission and one of its options"),
		RunE: func(c *cobra.Command, args []string) error {
			a := api.Answer{Session: args[0], Permission: args[1], Option: args[2]}
			if c.Flags().Changed("at") {
				if at < 0 {
					return usageError("--at takes the offset of the question, from 0")
				}
				a.Offset = &at
			}
			return e.reading(c.Context(), func(conn *connection) error {
				done, err := conn.Answer(c.Context(), a)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(done)
				}
				_, err = fmt.Fprintf(e.stdout, "answered %s at offset %d: %s\n", done.Permission, done.Offset, done.Option)
				return err
			})
		},
	}
	c.Flags().Int64Var(&at, "at", 0, "the offset of the question, as tapedeck permissions shows it (default: the one that is open)")
	return c
}
