package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
)

func newImport(e *env) *cobra.Command {
	var in tapedeck.ImportRequest
	c := &cobra.Command{
		Use:   "import FILE --format FORMAT",
		Short: "Make sessions of recorded conversations",
		Long: `Import reads conversations recorded by other programs and makes sessions of
them, with their own timestamps where they have any. FILE may be - for standard
input. A session is there whole or not at all; lines that are no part of a
conversation are reported with their numbers.

Formats:
  openai-messages   chat-completions messages: one conversation a line ({"messages":[…]},
                    {"traj":[…]} or a bare array), one message a line, or one JSON array
  claude-code       a session file of Claude Code (JSONL)`,
		Example: `  tapedeck import --format claude-code ~/.claude/projects/…/session.jsonl`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("%s takes one file, or - for standard input", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if in.Format == "" {
				return usageError("--format is needed: openai-messages or claude-code")
			}
			r, err := e.open(args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			return e.with(c.Context(), func(conn *connection) error {
				done, err := conn.Import(c.Context(), in, r)
				if err != nil {
					return err
				}
				return e.printImported(done)
			})
		},
	}
	c.Flags().StringVar(&in.Format, "format", "", "openai-messages or claude-code")
	c.Flags().StringVar(&in.Title, "title", "", "title of the sessions (default: from the content)")
	c.Flags().StringVar(&in.Owner, "owner", "", "owner of the sessions")
	return c
}

func (e *env) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.NotFound, "cannot read the file: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.Join(tapedeck.Errorf(tapedeck.Invalid, "%s is a folder; name a file in it", name), f.Close())
	}
	return f, nil
}

func (e *env) printImported(m tapedeck.Imported) error {
	if e.json {
		return e.printJSON(m)
	}
	for _, id := range m.Sessions {
		if _, err := fmt.Fprintln(e.stdout, id); err != nil {
			return err
		}
	}
	fmt.Fprintf(e.stderr, "imported %s with %s from %s\n", count(len(m.Sessions), "session"), count(m.Events, "event"), count(m.Lines, "line"))
	for i, s := range m.Skipped {
		if i == 20 {
			fmt.Fprintf(e.stderr, "  … and %d more lines\n", len(m.Skipped)-i)
			break
		}
		fmt.Fprintf(e.stderr, "  line %d left out: %s\n", s.Line, clean(s.Reason))
	}
	return nil
}
