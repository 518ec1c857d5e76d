package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/transcript"
	"github.com/tapedeck/tapedeck/view"
)

func newPermissions(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "permissions SESSION",
		Short: "List the pending questions of agents",
		Long: `Permissions lists the pending questions of the agents in a session, each with the
command, the changes and the files that it is about. To answer one, see:
tapedeck answer --help`,
		Example: `  tapedeck permissions ses_01J…`,
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return e.reading(c.Context(), func(conn *connection) error {
				all, err := conn.Permissions(c.Context(), args[0])
				if err != nil {
					return err
				}
				return e.printPermissions(all)
			})
		},
	}
}

func (e *env) printPermissions(all []view.Permission) error {
	for i := range all {
		p := &all[i]
		if p.Status != view.PermissionOpen {
			continue
		}
		if e.json {
			if err := e.printJSON(p); err != nil {
				return err
			}
			continue
		}
		q, err := questionOf(p)
		if err != nil {
			return err
		}
		if err := e.printPermission(&q, p.Offset); err != nil {
			return err
		}
	}
	return nil
}

// questionOf returns the question that a server has sent.
func questionOf(p *view.Permission) (tapedeck.Question, error) {
	q := tapedeck.Question{ID: p.ID, ToolCallID: p.ToolCallID, Message: p.Message}
	if p.Action != nil && json.Unmarshal(p.Action, &q.Action) != nil || p.Form != nil && json.Unmarshal(p.Form, &q.Form) != nil {
		return q, tapedeck.Errorf(tapedeck.Internal, "the server's answer cannot be read")
	}
	for _, o := range p.Options {
		q.Options = append(q.Options, tapedeck.PermissionOption{ID: o.ID, Name: o.Name, Kind: o.Kind, Covers: o.Covers})
	}
	return q, nil
}

// printPermission prints a question with the whole action.
func (e *env) printPermission(q *tapedeck.Question, at int64) error {
	var b strings.Builder
	message := terminal.Brief(terminal.Visible(q.Message), 100)
	fmt.Fprintf(&b, "%s  at %d  %s  (%s)\n", terminal.Visible(q.ID), at, message, optionIDs(q.Options))
	if message != q.Message {
		for line := range strings.Lines(terminal.Visible(q.Message)) {
			fmt.Fprintf(&b, "  %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	if q.Action != nil {
		for _, l := range transcript.ActionLines(q.Message, q.Action) {
			fmt.Fprintf(&b, "  %s\n", l.Text)
		}
	}
	for _, o := range q.Options {
		fmt.Fprintf(&b, "  %s: %s\n", terminal.Visible(o.ID), transcript.OptionText(&o))
	}
	for i := range q.Form {
		fmt.Fprintf(&b, "  --input %s=…  %s\n", terminal.Visible(q.Form[i].ID), fieldPrompt(&q.Form[i]))
	}
	_, err := io.WriteString(e.stdout, b.String())
	return err
}
