package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/shards"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

func newVerify(e *env) *cobra.Command {
	var urls []string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the data: database, events, offsets, forks",
		Long: `Verify reads the whole data folder. It checks that the database file is intact, that
the offsets of every session have no gaps, that every event is the one that was
written and follows the one before it, and that the catalogue of sessions agrees with
the events. It names each problem, and changes nothing.

Verify needs the folder for itself: stop the server first. With --postgres it checks
the sessions in a PostgreSQL database; there the server may run meanwhile. Give it once
for each of several databases, in their order: then verify also checks that each session is
where the server looks for it.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("postgres") {
				return e.verifyPostgres(c.Context(), urls)
			}
			if err := e.onlyFolder("verify works on a data folder, not through a server"); err != nil {
				return err
			}
			if err := e.exists(); err != nil {
				return err
			}
			return e.verify(c.Context())
		},
	}
	c.Flags().StringArrayVar(&urls, "postgres", nil, "check the sessions in this PostgreSQL database, see serve; give it several times for several databases")
	return c
}

func (e *env) verify(ctx context.Context) error {
	key, err := e.encryptionKey(ctx)
	if err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, e.folder(), sqlite.Options{CheckBelow: -1, Key: key, WithoutKeys: key == nil}) // Verify checks everything
	if err != nil {
		return err
	}
	defer s.Close()
	progress, end := e.showProgress()
	report, err := s.Verify(ctx, progress)
	end()
	if err != nil {
		return err
	}
	return e.printReport(&report)
}

func (e *env) verifyPostgres(ctx context.Context, urls []string) error {
	if e.url != "" || e.data != "" {
		return usageError("verify --postgres works on a database, so neither --data nor --url can be used with it")
	}
	all := postgres.Options{URL: urls[0]}.With(urls[1:]...)
	if len(all) > 1 {
		switch cluster, err := postgres.Arrange(ctx, all); {
		case err != nil:
			return err
		case cluster == "":
			return tapedeck.Errorf(tapedeck.NotFound, "these are not the databases of one store: no server was started with all of them").
				WithHint("give --postgres for one of them")
		}
	}
	report, err := e.verifyDatabases(ctx, all)
	if err != nil {
		return err
	}
	return e.printReport(&report)
}

// verifyDatabases checks each database, and then that each session is where a server looks
// for it.
func (e *env) verifyDatabases(ctx context.Context, all []postgres.Options) (sum store.Report, err error) {
	for i, o := range all {
		progress, end := e.showProgress()
		r, err := postgres.Verify(ctx, o, progress)
		end()
		if err != nil {
			return sum, err
		}
		if len(all) > 1 {
			for j := range r.Problems {
				r.Problems[j] = fmt.Sprintf("database %d: %s", i+1, r.Problems[j])
			}
		}
		sum.Add(&r)
	}
	if len(all) == 1 {
		return sum, nil
	}
	return sum, shards.Verify(len(all), func(i int, each func(string, tapedeck.SessionKind, string)) error {
		return postgres.Ids(ctx, all[i], each)
	}, &sum)
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

func (e *env) printReport(r *store.Report) error {
	bad := int64(len(r.Problems)) + r.More
	if e.json {
		if err := e.printJSON(map[string]any{
			"sessions": r.Sessions, "streams": r.Streams, "events": r.Events, "bytes": r.Bytes,
			"without_checksum": r.Unsummed, "encrypted": r.Encrypted, "problems": append([]string{}, r.Problems...), "more_problems": r.More,
		}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(e.stdout, "%s, %s, %s, %s\n",
			terminal.Count(int(r.Sessions), "session"), terminal.Count(int(r.Streams), "stream"), terminal.Count(int(r.Events), "event"), terminal.Count(int(r.Bytes), "byte"))
		if r.Unsummed > 0 {
			fmt.Fprintf(e.stdout, "%s written before there were checksums\n", terminal.Count(int(r.Unsummed), "event"))
		}
		if r.Encrypted > 0 {
			fmt.Fprintf(e.stdout, "%s encrypted: without the key only the checksums were checked\n", terminal.Count(int(r.Encrypted), "event"))
		}
		e.printProblems(r)
	}
	if bad > 0 {
		return &exitError{exitFailed, tapedeck.Errorf(tapedeck.Internal, "%s found", terminal.Count(int(bad), "problem")).
			WithHint("keep a copy of the data and restore a backup; `tapedeck salvage` reads what can be read of a data folder")}
	}
	if !e.json {
		fmt.Fprintln(e.stdout, "no problems")
	}
	return nil
}

func (e *env) printProblems(r *store.Report) {
	for _, p := range r.Problems {
		fmt.Fprintln(e.stdout, terminal.Clean(p))
	}
	if r.More > 0 {
		fmt.Fprintf(e.stdout, "… and %d more\n", r.More)
	}
}
