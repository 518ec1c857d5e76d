package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newAppend(e *env) *cobra.Command {
	var expect int64
	var create bool
	var title string
	var producer tapedeck.Producer
	c := &cobra.Command{
		Use:   "append SESSION",
		Short: "Append events from standard input, one JSON object per line",
		Long: `Append reads events from standard input, one JSON object per line, and appends them
to a session in one step: all of them, or none and an error.

An event needs a type. Tapedeck sets channel, offset and timestamp. The types are
listed in docs/events.md.`,
		Example: `  echo '{"type":"message.added","data":{"message":{"id":"m1","role":"user","content":"hello"}}}' |
    tapedeck append demo --create`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			o := client.AppendOptions{}
			if expect < 0 {
				return usageError("--expect takes an offset, from 0")
			}
			if c.Flags().Changed("expect") {
				o.Expect = &expect
			}
			if producer.ID != "" {
				o.Producer = &producer
			} else if c.Flags().Changed("epoch") || c.Flags().Changed("seq") {
				return usageError("--epoch and --seq need --producer")
			}
			with := e.withExisting
			if create {
				with = e.with
			}
			return with(c.Context(), func(conn *connection) error {
				if create {
					if err := createOnce(c, conn, args[0], title); err != nil {
						return err
					}
				}
				done, err := conn.Append(c.Context(), args[0], e.stdin, o)
				if err != nil {
					return err
				}
				return e.printAppended(done)
			})
		},
	}
	c.Flags().Int64Var(&expect, "expect", 0, "append only if this is the next offset of the session")
	c.Flags().StringVar(&producer.ID, "producer", "", "id of the producer, which makes it safe to repeat an append")
	c.Flags().Int64Var(&producer.Epoch, "epoch", 0, "epoch of the producer")
	c.Flags().Int64Var(&producer.Seq, "seq", 0, "sequence number of this append in the epoch")
	c.Flags().BoolVar(&create, "create", false, "create the session if it does not exist; it stays even if the append fails")
	c.Flags().StringVar(&title, "title", "", "title of the session that --create creates")
	return c
}

// createOnce creates the session unless it exists.
func createOnce(c *cobra.Command, conn *connection, id, title string) error {
	_, err := conn.Session(c.Context(), id)
	if tapedeck.KindOf(err) != tapedeck.NotFound {
		return err
	}
	_, err = conn.Create(c.Context(), api.NewSession{ID: id, Title: title})
	return err
}

func (e *env) printAppended(a tapedeck.Appended) error {
	if e.json {
		return e.printJSON(map[string]any{"first": a.First, "last": a.Next - 1, "head": a.Head, "duplicate": a.Duplicate})
	}
	if a.Duplicate {
		_, err := fmt.Fprintln(e.stdout, "nothing appended: these events were appended before")
		return err
	}
	_, err := fmt.Fprintf(e.stdout, "appended %s, offsets %d to %d\n", terminal.Count(int(a.Next-a.First), "event"), a.First, a.Next-1)
	return err
}
