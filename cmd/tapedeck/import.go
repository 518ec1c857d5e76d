package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newImport(e *env) *cobra.Command {
	var in api.ImportRequest
	var preview bool
	c := &cobra.Command{
		Use:   "import FILE…",
		Short: "Import recorded conversations as sessions",
		Long: `Import reads exported sessions, and conversations that other programs recorded, and
creates sessions from them. Recorded times are kept. FILE can be - for standard
input. A file is imported completely or not at all; lines that are not part of a
conversation are reported with their numbers. With --preview, import only reports
which sessions it would create.

Formats:
  auto              detected from the first line of the file
  ndjson            a session exported by tapedeck: restores the same session, under
                    its own id if that is free
  agui              AG-UI events: JSON lines, one array, or Server-Sent Events
  asciicast         a terminal recording, version 2 or 3
  claude-code       a session file of Claude Code (JSONL)
  openai-messages   chat-completions messages: one conversation per line ({"messages":[…]},
                    {"traj":[…]} or a bare array), one message per line, or one JSON array`,
		Example: `  tapedeck import ~/.claude/projects/…/session.jsonl
  tapedeck import session.ndjson demo.cast
  tapedeck import --preview chats.jsonl
  tapedeck import - --format openai-messages --owner ada < chats.jsonl`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains(args, "") {
				return usageError("%s takes files, or - for standard input", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOwner(in.Owner); err != nil {
				return err
			}
			return e.importFiles(c.Context(), in, args, preview)
		},
	}
	c.Flags().StringVar(&in.Format, "format", "auto", "auto, ndjson, agui, asciicast, claude-code or openai-messages")
	c.Flags().StringVar(&in.Title, "title", "", "title of the sessions (default: from the content)")
	c.Flags().StringVar(&in.Owner, "owner", "", "owner of the sessions")
	c.Flags().BoolVar(&preview, "preview", false, "only report what would be created")
	return c
}

// importFiles imports files one after the other, or previews them.
func (e *env) importFiles(ctx context.Context, in api.ImportRequest, names []string, preview bool) error {
	for _, name := range names { // before anything is imported, or created
		if err := checkFile(name); err != nil {
			return err
		}
	}
	act, with := e.importFile, e.with
	if preview {
		act, with = e.previewImport, e.withoutTrace
	}
	return with(ctx, func(conn *connection) error {
		for i, name := range names {
			if err := act(ctx, conn, in, name); err != nil {
				if len(names) > 1 && !preview {
					e.notice("%s was not imported; %d before it were imported, %d after it were not read", name, i, len(names)-i-1)
				}
				return err
			}
		}
		return nil
	})
}

func (e *env) importFile(ctx context.Context, conn *connection, in api.ImportRequest, name string) error {
	r, err := e.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	p := e.progress(r)
	done, err := conn.Import(ctx, in, p)
	p.clear()
	if err != nil {
		return err
	}
	return e.printImported(done)
}

// A progress is a reader that shows in a terminal how much of a file has been read.
type progress struct {
	io.Reader
	to    io.Writer // nil for no output
	size  int64     // 0 if unknown
	read  int64
	shown time.Time
	drawn bool
}

// progressEvery is the time between two updates.
const progressEvery = 200 * time.Millisecond

func (e *env) progress(r io.Reader) *progress {
	p := &progress{Reader: r, shown: time.Now()} // so that a fast import shows nothing
	if f, ok := e.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.to = f
	}
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			p.size = info.Size()
		}
	}
	return p
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.read += int64(n)
	if p.to != nil && time.Since(p.shown) >= progressEvery {
		p.shown, p.drawn = time.Now(), true
		fmt.Fprintf(p.to, "\r%s\x1b[K", p.line())
	}
	return n, err
}

func (p *progress) line() string {
	const mb = 1e6
	if p.size == 0 {
		return fmt.Sprintf("%.1f MB", float64(p.read)/mb)
	}
	return fmt.Sprintf("%.1f of %.1f MB (%d %%)", float64(p.read)/mb, float64(p.size)/mb, 100*p.read/p.size)
}

// clear removes the progress line.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

func (e *env) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.stdin), nil
	}
	if err := checkFile(name); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	return f, nil
}

// checkFile returns an error if there is no file with the name, or a folder. It does not open
// the file, which may be a pipe.
func checkFile(name string) error {
	if name == "-" {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return fileError(name, err)
	case info.IsDir():
		return tapedeck.Errorf(tapedeck.Invalid, "%s is a folder", name).WithHint("name a file in it")
	}
	return nil
}

func (e *env) printImported(m api.Imported) error {
	if e.json {
		return e.printJSON(m)
	}
	for _, id := range m.Sessions {
		if _, err := fmt.Fprintln(e.stdout, id); err != nil {
			return err
		}
	}
	fmt.Fprintf(e.stderr, "imported %s with %s from %s\n", terminal.Count(len(m.Sessions), "session"), terminal.Count(m.Events, "event"), terminal.Count(m.Lines, "line"))
	e.printSkipped(m.Skipped)
	return nil
}

func (e *env) printSkipped(lines []api.LineError) {
	for i, s := range lines {
		if i == 20 {
			fmt.Fprintf(e.stderr, "  … and %d more lines\n", len(lines)-i)
			break
		}
		fmt.Fprintf(e.stderr, "  line %d left out: %s\n", s.Line, terminal.Clean(s.Reason))
	}
}

// previewImport reports which sessions a file would become.
func (e *env) previewImport(ctx context.Context, conn *connection, in api.ImportRequest, name string) error {
	r, err := e.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	p := e.progress(r)
	m, err := conn.PreviewImport(ctx, in, p)
	p.clear()
	if err != nil || e.json {
		return errors.Join(err, e.printIf(err == nil, m))
	}
	for _, s := range m.Sessions {
		fmt.Fprintf(e.stdout, "%s  %s  %s\n", previewedID(s), terminal.Count(s.Events, "event"), terminal.Brief(s.Title, 60))
	}
	if more := m.Total - len(m.Sessions); more > 0 {
		fmt.Fprintf(e.stdout, "… and %d more\n", more)
	}
	fmt.Fprintf(e.stderr, "%s: would create %s with %s from %s\n", m.Format, terminal.Count(m.Total, "session"), terminal.Count(m.Events, "event"), terminal.Count(m.Lines, "line"))
	e.printSkipped(m.Skipped)
	return nil
}

func previewedID(s api.PreviewedSession) string {
	if s.ID == "" || s.IDTaken {
		return "(a new id)"
	}
	return terminal.Clean(s.ID)
}
