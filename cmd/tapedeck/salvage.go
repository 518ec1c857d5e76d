package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

func newSalvage(e *env) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "salvage FOLDER --to NEWFOLDER",
		Short: "Read what can be read of a damaged data folder",
		Long: `Salvage reads a data folder whose database is damaged, and writes what it can read
into a new data folder: each session and stream up to its first event that is missing
or damaged, with the same ids and offsets. It says which are whole, and where the
others end. The result passes verify.

The damaged folder stays as it is. Stop its server first. Salvage needs space for a
copy of the database and for the new one.

Not copied are the positions of producers and subscriptions, push notification
configs, the money that owners have spent, the keys, and the folders of agents. If you
have a backup, compare: it may have more.`,
		Example: `  tapedeck salvage ./tapedeck-data --to ./salvaged`,
		Args:    oneFolder,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case e.url != "" || e.data != "":
				return usageError("salvage takes its folder as an argument, so neither --data nor --url can be used with it")
			case to == "":
				return usageError("salvage needs --to NEWFOLDER")
			}
			return e.salvage(c.Context(), args[0], to)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the new data folder; it must not have a database")
	return c
}

func (e *env) salvage(ctx context.Context, from, to string) error {
	key, err := e.encryptionKey(ctx)
	if err != nil {
		return err
	}
	var got store.Salvage
	err = sqlite.Attempt(to, func() error {
		got, err = sqlite.Salvage(ctx, from, to, key)
		return err
	})
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(map[string]any{
			"sessions": got.Sessions, "streams": got.Streams, "events": got.Events, "whole": got.Whole, "workflows": got.Workflows,
			"cut": append([]store.SalvageCut{}, got.Cut...), "lost": append([]store.SalvageCut{}, got.Lost...),
			"nameless": got.Nameless, "stray_events": got.Stray, "unreadable_bytes": got.Blind,
		})
	}
	e.printSalvage(&got)
	_, err = fmt.Fprintf(e.stdout, "%s\n", terminal.Clean("To serve it: tapedeck serve --data "+to))
	return err
}

func (e *env) printSalvage(s *store.Salvage) {
	fmt.Fprintf(e.stdout, "%s, %s, %s; %d of the sessions and streams are whole\n",
		terminal.Count(int(s.Sessions), "session"), terminal.Count(int(s.Streams), "stream"), terminal.Count(int(s.Events), "event"), s.Whole)
	line := func(format string, args ...any) {
		fmt.Fprintln(e.stdout, terminal.Clean(fmt.Sprintf(format, args...)))
	}
	for _, c := range s.Cut {
		had := ""
		if c.Head > c.Offset {
			had = fmt.Sprintf(" of %d", c.Head)
		}
		line("cut: %s has %d%s events, up to offset %d: %s", c.Session, c.Offset, had, c.Offset, c.Reason)
	}
	for _, c := range s.Lost {
		line("lost: %s: %s", c.Session, c.Reason)
	}
	if s.Nameless > 0 {
		line("%s whose name cannot be read are called salvaged-NUMBER", terminal.Count(int(s.Nameless), "session"))
	}
	if s.Stray > 0 {
		line("%s could be read and are left out: they come after a damaged one, or belong to nothing", terminal.Count(int(s.Stray), "event"))
	}
	if s.Blind > 0 {
		line("the disk does not return %s of the files", terminal.Count(int(s.Blind), "byte"))
	}
}
