package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

func newVerify(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the data folder: database, events, offsets, forks",
		Long: `Verify reads the whole data folder. It checks that the database file is intact, that
the offsets of every session have no gaps, that every event can be read, and that
the catalogue of sessions agrees with their events. It changes nothing.

Verify needs the folder for itself: stop the server first.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if e.serverURL() != "" {
				return usageError("verify works on a data folder, not through a server")
			}
			if err := e.exists(); err != nil {
				return err
			}
			return e.verify(c.Context())
		},
	}
}

func (e *env) verify(ctx context.Context) error {
	store, err := sqlite.Open(ctx, e.folder(), sqlite.Options{CheckBelow: -1}) // Verify checks everything
	if err != nil {
		return err
	}
	defer store.Close()
	var progress func(done, total int64)
	if e.color(e.stderr) { // a terminal
		progress = func(done, total int64) { fmt.Fprintf(e.stderr, "\r%d of %d events", done, total) }
	}
	report, err := store.Verify(ctx, progress)
	if progress != nil {
		fmt.Fprint(e.stderr, "\r\x1b[K")
	}
	if err != nil {
		return err
	}
	return e.printReport(&report)
}

func (e *env) printReport(r *sqlite.Report) error {
	bad := int64(len(r.Problems)) + r.More
	if e.json {
		if err := e.printJSON(map[string]any{
			"sessions": r.Sessions, "streams": r.Streams, "events": r.Events, "bytes": r.Bytes,
			"problems": append([]string{}, r.Problems...), "more_problems": r.More,
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(e.stdout, "%s, %s, %s, %s\n",
			terminal.Count(int(r.Sessions), "session"), terminal.Count(int(r.Streams), "stream"), terminal.Count(int(r.Events), "event"), terminal.Count(int(r.Bytes), "byte"))
		for _, p := range r.Problems {
			fmt.Fprintln(e.stdout, terminal.Clean(p))
		}
		if r.More > 0 {
			fmt.Fprintf(e.stdout, "… and %d more\n", r.More)
		}
	}
	if bad > 0 {
		return &exitError{exitFailed, tapedeck.Errorf(tapedeck.Internal, "there are %d problems", bad).
			WithHint("keep a copy of the data folder and restore a backup")}
	}
	if !e.json {
		fmt.Fprintln(e.stdout, "no problems")
	}
	return nil
}
