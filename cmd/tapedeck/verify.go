package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

func newVerify(e *env) *cobra.Command {
	var url string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the data: database, events, offsets, forks",
		Long: `Verify reads the whole data folder. It checks that the database file is intact, that
the offsets of every session have no gaps, that every event can be read, and that
the catalogue of sessions agrees with their events. It changes nothing.

Verify needs the folder for itself: stop the server first. With --postgres it checks
the sessions in a PostgreSQL database; there the server may run meanwhile.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("postgres") {
				return e.verifyPostgres(c.Context(), url)
			}
			if e.serverURL() != "" {
				return usageError("verify works on a data folder, not through a server")
			}
			if err := e.exists(); err != nil {
				return err
			}
			return e.verify(c.Context())
		},
	}
	c.Flags().StringVar(&url, "postgres", "", "check the sessions in this PostgreSQL database, see serve")
	return c
}

func (e *env) verify(ctx context.Context) error {
	store, err := sqlite.Open(ctx, e.folder(), sqlite.Options{CheckBelow: -1}) // Verify checks everything
	if err != nil {
		return err
	}
	defer store.Close()
	progress, end := e.showProgress()
	report, err := store.Verify(ctx, progress)
	end()
	if err != nil {
		return err
	}
	return e.printReport(&report)
}

func (e *env) verifyPostgres(ctx context.Context, url string) error {
	if e.serverURL() != "" || e.data != "" {
		return usageError("verify --postgres works on a database, so neither --data nor --url can be used with it")
	}
	progress, end := e.showProgress()
	report, err := postgres.Verify(ctx, postgres.Options{URL: url}, progress)
	end()
	if err != nil {
		return err
	}
	both := sqlite.Report(report)
	return e.printReport(&both)
}

// showProgress returns a function that shows progress on a terminal, nil if there is none,
// and one that removes it.
func (e *env) showProgress() (show func(done, total int64), end func()) {
	if !e.color(e.stderr) {
		return nil, func() {}
	}
	show = func(done, total int64) { fmt.Fprintf(e.stderr, "\r%d of %d events", done, total) }
	return show, func() { fmt.Fprint(e.stderr, "\r\x1b[K") }
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
			WithHint("keep a copy of the data and restore a backup")}
	}
	if !e.json {
		fmt.Fprintln(e.stdout, "no problems")
	}
	return nil
}
