package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// suffixes are the formats by the suffix of a file name.
var suffixes = map[string]string{
	".json": "json", ".ndjson": "ndjson", ".jsonl": "ndjson", ".md": "markdown", ".csv": "csv", ".cast": "asciicast",
	".html": "html", ".htm": "html",
}

type exportFlags struct {
	api.ExportRequest
	at        int64
	start     int64
	poster    int64
	effective bool
	file      string
	force     bool
	preview   bool
}

func newExport(e *env) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export SESSION",
		Short: "Export a session to a file",
		Long: `Export writes a session to standard output or to a file. It overwrites an existing
file only with --force, and it never leaves a partial file.

Formats:
  ndjson      every event, one per line; tapedeck import restores the session from it
  json        one document: the session, its events, and the conversation
  markdown    a transcript for people
  csv         one row per event
  html        one page that plays the session and loads nothing else; at most 50 MB
              of events. It opens at its end, or as --start, --poster and --theme say
  asciicast   a terminal of the session, for asciinema (see --terminal)

Without --format, the name of the file decides; otherwise the format is markdown, or
ndjson with --json.

Redaction replaces text by [redacted]: the values of members with --redact-key,
matches of a regular expression with --redact, and with --redact-preset the rule
sets secrets (keys, tokens, passwords) and pii (e-mail addresses). A secret is found
even if it was streamed in several pieces. --preview shows what the rules find and
writes nothing. No set of rules finds everything: check the export before you share
it.`,
		Example: `  tapedeck export ses_01J… -o session.md
  tapedeck export ses_01J… -o session.ndjson --redact-preset secrets
  tapedeck export ses_01J… -o session.html --redact-preset secrets
  tapedeck export ses_01J… -o session.html --poster 40 --start 0 --theme dark
  tapedeck export ses_01J… --preview --redact-key internal_id --redact 'ACME-[0-9]+'
  tapedeck export ses_01J… --format asciicast | asciinema play -`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			f.Session = args[0]
			if err := f.read(c.Flags()); err != nil {
				return err
			}
			return e.export(c.Context(), f)
		},
	}
	f.add(c.Flags())
	return c
}

// read sets the members of the request whose absence has a meaning.
func (f *exportFlags) read(flags *pflag.FlagSet) error {
	if f.at < 0 {
		return usageError("--at takes an offset, from 0")
	}
	if flags.Changed("at") {
		f.At = &f.at
	}
	if flags.Changed("start") {
		f.Start = &f.start
	}
	if flags.Changed("poster") {
		f.Poster = &f.poster
	}
	if f.effective {
		f.View = api.ExportEffective
	}
	return nil
}

func (f *exportFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.Format, "format", "", "ndjson, json, markdown, csv, html or asciicast")
	flags.StringVarP(&f.file, "output", "o", "", "write to this file (default: standard output)")
	flags.BoolVar(&f.force, "force", false, "overwrite an existing file")
	flags.Int64Var(&f.at, "at", 0, "only the events before this offset (default: all)")
	flags.BoolVar(&f.effective, "effective", false, "only active events, without reverted ones")
	flags.Int64Var(&f.start, "start", 0, "html: begin to play before this offset")
	flags.Int64Var(&f.poster, "poster", 0, "html: until it is played, show the moment before this offset, with a large button")
	flags.StringVar((*string)(&f.Theme), "theme", "", "html: light or dark (default: that of the reader)")
	flags.StringVar(&f.Terminal, "terminal", "", "id of the terminal to export, for asciicast")
	flags.StringArrayVar(&f.Redact.Keys, "redact-key", nil, "redact the values of members with this name (repeatable)")
	flags.StringArrayVar(&f.Redact.Patterns, "redact", nil, "redact matches of this regular expression (repeatable)")
	flags.StringArrayVar(&f.Redact.Presets, "redact-preset", nil, "redact with a rule set: secrets or pii (repeatable)")
	flags.BoolVar(&f.preview, "preview", false, "only show what would be redacted")
}

func (e *env) export(ctx context.Context, f exportFlags) error {
	if ext := strings.ToLower(filepath.Ext(f.file)); f.Format == "" {
		if f.Format = suffixes[ext]; f.Format == "" && ext != "" {
			return usageError("there is no export format for %s; name the file .md, .json, .ndjson, .csv, .html or .cast, or pass --format", ext)
		}
	}
	if f.Format == "" && e.json {
		f.Format = "ndjson" // one value per line
	}
	if f.Format == "" {
		f.Format = "markdown"
	}
	return e.reading(ctx, func(conn *connection) error {
		if f.preview {
			return e.previewExport(ctx, conn, f.ExportRequest)
		}
		if f.file == "" || f.file == "-" {
			return e.exportTo(ctx, conn, f.ExportRequest, e.plain(e.stdout))
		}
		return e.exportFile(ctx, conn, f)
	})
}

func (e *env) exportTo(ctx context.Context, conn *connection, in api.ExportRequest, w io.Writer) error {
	r, err := conn.Export(ctx, in)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	if err == nil {
		err = flush(w)
	}
	return exportError(ctx, err)
}

// exportError replaces the error of a stream that the server cut off.
func exportError(ctx context.Context, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the server stopped the export before its end").WithHint("see the log of the server, or try again")
	}
	return err
}

// exportFile writes to a temporary file and renames it, so that no other process
// sees a partial export.
func (e *env) exportFile(ctx context.Context, conn *connection, f exportFlags) (err error) {
	switch info, err := os.Lstat(f.file); {
	case err == nil && info.IsDir():
		return tapedeck.Errorf(tapedeck.Invalid, "%s is a folder", f.file).WithHint("name a file")
	case err == nil && !f.force:
		return fileExists(f.file)
	}
	tmp, err := os.OpenFile(f.file+"."+tapedeck.NewID("tmp_"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		var why *os.PathError // its text names the temporary file
		if errors.As(err, &why) {
			err = why.Err
		}
		return tapedeck.Errorf(tapedeck.Invalid, "cannot write %s: %w", f.file, err)
	}
	defer func() { err = errors.Join(err, removeTemp(tmp.Name())) }()
	err = e.exportTo(ctx, conn, f.ExportRequest, tmp)
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = place(tmp.Name(), f.file, f.force)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "wrote %s\n", f.file)
	return nil
}

// place gives a finished file its name. Without force it does not replace another
// file, even one that was created meanwhile.
func place(tmp, name string, force bool) error {
	if force {
		return os.Rename(tmp, name)
	}
	err := os.Link(tmp, name)
	switch {
	case errors.Is(err, os.ErrExist):
		return fileExists(name)
	case err != nil: // the file system has no links
		return os.Rename(tmp, name)
	}
	return nil
}

func removeTemp(name string) error {
	if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func fileExists(name string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "%s exists", name).WithHint("choose another name, or pass --force to overwrite it")
}

func (e *env) previewExport(ctx context.Context, conn *connection, in api.ExportRequest) error {
	p, err := conn.PreviewExport(ctx, in)
	if err != nil || e.json {
		return errors.Join(err, e.printIf(err == nil, p))
	}
	found := 0
	for _, r := range p.Rules {
		if r.Count == 0 {
			continue
		}
		found++
		fmt.Fprintf(e.stdout, "%6d  %s\n", r.Count, terminal.Clean(r.Rule))
		for _, s := range r.Samples {
			fmt.Fprintf(e.stdout, "        offset %d  %s\n", s.Offset, terminal.Brief(s.Masked, 60))
		}
	}
	if len(p.Rules) == 0 {
		return usageError("there are no redaction rules; pass --redact-preset secrets, --redact-key or --redact")
	}
	fmt.Fprintf(e.stderr, "%s would be changed; %d of %d rules matched\n", terminal.Count(int(p.Events), "event"), found, len(p.Rules))
	return nil
}

func (e *env) printIf(yes bool, v any) error {
	if !yes {
		return nil
	}
	return e.printJSON(v)
}

// plain returns a writer that cleans text for a terminal, if w is one; a file or a
// pipe receives every byte unchanged.
func (e *env) plain(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &cleaner{w: w}
	}
	return w
}

// A cleaner cleans text for a terminal. It writes whole lines, so that it never
// splits a character.
type cleaner struct {
	w    io.Writer
	rest []byte
}

func (c *cleaner) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	end := bytes.LastIndexByte(c.rest, '\n') + 1
	if end == 0 {
		return len(b), nil
	}
	_, err := io.WriteString(c.w, terminal.Clean(string(c.rest[:end])))
	c.rest = append(c.rest[:0], c.rest[end:]...)
	return len(b), err
}

func (c *cleaner) flush() error {
	_, err := io.WriteString(c.w, terminal.Clean(string(c.rest)))
	c.rest = nil
	return err
}

// flush writes the text that a cleaner still holds.
func flush(w io.Writer) error {
	if c, ok := w.(*cleaner); ok {
		return c.flush()
	}
	return nil
}
