package api

import (
	"io"

	"github.com/tapedeck/tapedeck"
)

// An ExportRequest asks for a session as a file. A format that does not exist is
// [tapedeck.Invalid].
type ExportRequest struct {
	Session  string     `json:"-"`
	Format   string     `json:"format,omitempty"`   // ndjson, json, markdown, csv, html or asciicast; a preview needs none
	At       *int64     `json:"at,omitempty"`       // only the events before this offset; absent: all events
	View     ExportView `json:"view,omitempty"`     // without it, all
	Terminal string     `json:"terminal,omitempty"` // the terminal that an asciicast shows, if there are several
	Redact   Redaction  `json:"redact,omitzero"`    // the rules for what is left out

	// Of html: how the recording opens.
	Start  *int64 `json:"start,omitempty"`  // play begins as it was before this offset; absent: a recording with a poster plays from its beginning, another opens at its end
	Poster *int64 `json:"poster,omitempty"` // until somebody plays it, it shows the session as it was before this offset, below a large button; absent: no poster
	Theme  Theme  `json:"theme,omitempty"`  // absent: the theme of the reader's system
}

// A Theme is the look of a recording.
type Theme string

// The themes.
const (
	ThemeLight Theme = "light"
	ThemeDark  Theme = "dark"
)

// An ExportView selects the events of an export.
type ExportView string

// The views.
const (
	ExportAll       ExportView = "all"       // all events
	ExportEffective ExportView = "effective" // only the active events
)

// formatHTML is the format of recordings, the only one with a start, a poster and a theme.
const formatHTML = "html"

// formatAsciicast is the format of recordings of a terminal, the only one with a terminal.
const formatAsciicast = "asciicast"

// Check reports whether the view exists, no offset is negative, and how a recording
// opens, or its terminal, fits the format. The error is [tapedeck.Invalid].
func (r *ExportRequest) Check() error {
	switch {
	case r.Format != formatHTML && (r.Start != nil || r.Poster != nil || r.Theme != ""):
		return tapedeck.Errorf(tapedeck.Invalid, "start, poster and theme belong to the format html, not to %q", r.Format).
			WithHint("leave them out, or export as html")
	case r.Format != formatAsciicast && r.Terminal != "":
		return tapedeck.Errorf(tapedeck.Invalid, "a terminal belongs to the format asciicast, not to %q", r.Format).
			WithHint("leave it out, or export as asciicast")
	case r.Theme != "" && r.Theme != ThemeLight && r.Theme != ThemeDark:
		return tapedeck.Errorf(tapedeck.Invalid, "the theme must be light or dark, not %q", r.Theme)
	case r.Start != nil && *r.Start < 0, r.Poster != nil && *r.Poster < 0:
		return tapedeck.Errorf(tapedeck.Invalid, "the offsets start and poster must not be negative")
	case r.View != "" && r.View != ExportAll && r.View != ExportEffective:
		return tapedeck.Errorf(tapedeck.Invalid, "the view must be all or effective, not %q", r.View)
	case r.At != nil && *r.At < 0:
		return tapedeck.Errorf(tapedeck.Invalid, "the offset at must not be negative")
	}
	return nil
}

// An Export is a session that can be written as a file.
type Export struct {
	Name      string `json:"-"` // the name of the file
	MediaType string `json:"-"`

	// Write reads the session and writes it while it reads. It holds no more of the
	// session in memory than the format needs. After an error the file is not
	// complete.
	Write func(w io.Writer) error `json:"-"`
}

// A Redaction says what an export leaves out. [Redacted] takes its place. The log
// itself does not change.
type Redaction struct {
	Keys     []string `json:"keys,omitempty"`     // members of these names lose their value, at any depth and in any case; "-" and "_" do not count
	Patterns []string `json:"patterns,omitempty"` // regular expressions (RE2): text that matches is left out
	Presets  []string `json:"presets,omitempty"`  // sets of rules that the engine has: secrets, pii
}

// Redacted takes the place of what a [Redaction] left out.
const Redacted = "[redacted]"

// A RedactionPreview reports what a [Redaction] would leave out of an export.
type RedactionPreview struct {
	Events int64           `json:"events"` // the number of events that would change
	Rules  []RedactionRule `json:"rules"`
}

// A RedactionRule is one key or pattern, and its matches.
type RedactionRule struct {
	Rule    string            `json:"rule"`  // such as "key password" or "secrets: AWS access key"
	Count   int64             `json:"count"` // the number of its matches
	Samples []RedactionSample `json:"samples,omitempty"`
}

// A RedactionSample is a match that is almost completely masked.
type RedactionSample struct {
	Offset int64  `json:"offset"` // the offset of the event in which the match begins
	Masked string `json:"masked"`
}
