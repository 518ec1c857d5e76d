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
}

// An ExportView selects the events of an export.
type ExportView string

// The views.
const (
	ExportAll       ExportView = "all"       // all events
	ExportEffective ExportView = "effective" // only the active events
)

// Check reports whether the view exists and the offset is not negative. The error
// is [tapedeck.Invalid].
func (r *ExportRequest) Check() error {
	switch {
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
