package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

func newAnswer(e *env) *cobra.Command {
	var at int64
	var inputs []string
	var file string
	c := &cobra.Command{
		Use:   "answer SESSION PERMISSION OPTION",
		Short: "Answer a question of an agent",
		Long: `Answer answers a pending question of an agent with one of its options. List both
with: tapedeck permissions

The first answer counts. With --at the answer counts only for the question at that
offset, which is the one that you have seen.

A question may have a form. --input gives the value of a field, and --inputs a file
with a JSON object of values.`,
		Example: `  tapedeck answer ses_01J… perm_01J… allow_once --at 42
  tapedeck answer ses_01J… perm_01J… complete --input decision=patch --input "note=at night"`,
		Args: sessionAnd(2, 2, "a session, a permission and one of its options"),
		RunE: func(c *cobra.Command, args []string) error {
			a := api.Answer{Session: args[0], Permission: args[1], Option: args[2]}
			if c.Flags().Changed("at") {
				if at < 0 {
					return usageError("--at takes the offset of the question, from 0")
				}
				a.Offset = &at
			}
			return e.withExisting(c.Context(), func(conn *connection) error {
				var err error
				if len(inputs) > 0 || file != "" {
					a.Input, err = e.formInput(c.Context(), conn, &a, inputs, file)
				}
				if err != nil {
					return err
				}
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
	c.Flags().Int64Var(&at, "at", 0, "offset of the question, as tapedeck permissions shows it (default: the pending question)")
	c.Flags().StringArrayVar(&inputs, "input", nil, "value of a field of the form, as FIELD=VALUE; may be repeated")
	c.Flags().StringVar(&file, "inputs", "", "file with a JSON object of values of the form")
	return c
}

// formInput returns the values of a form, in the types that its fields have.
func (e *env) formInput(ctx context.Context, c *connection, a *api.Answer, inputs []string, file string) (map[string]json.RawMessage, error) {
	all, err := c.Permissions(ctx, a.Session)
	if err != nil {
		return nil, err
	}
	var fields []tapedeck.FormField
	for i := range all {
		if p := &all[i]; p.ID == a.Permission && p.Status == view.PermissionOpen {
			_ = json.Unmarshal(p.Form, &fields) // without fields, the server says what does not fit
		}
	}
	return assignments("input", inputs, file, fields)
}
