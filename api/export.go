package api

import (
	"io"
)

// An ExportRequest asks for a session as a file.
type ExportRequest struct {
	Session   string
	Format    string // see the engine for those it knows
	At        int64  // the events before this offset; negative for all
	Effective bool   // only what is in force as of At, see [tapedeck.Jump]
	Terminal  string // of a recording: which terminal; "" for the only one
	Redact    Redaction
}

// An Export is a session that can be written as a file.
type Export struct {
	Name      string // for the file
	MediaType string

	// Write reads the session and writes it as it reads, holding no more of it
	// than the format asks for. After an error what was written is not whole.
	Write func(w io.Writer) error
}

// A Redaction says what an export is to leave out. In its place stands
// [Redacted]. The log itself stays as it is.
type Redaction struct {
	Keys     []string `json:"keys,omitempty"`     // members of these names lose their value, at any depth and in any case, "-" and "_" not counted
	Patterns []string `json:"patterns,omitempty"` // what matches such a regular expression (RE2) goes, in any text
	Presets  []string `json:"presets,omitempty"`  // sets of rules that the engine has
}

// Redacted is what stands for what a [Redaction] has left out.
const Redacted = "[redacted]"

// A RedactionPreview says what a [Redaction] would leave out of an export.
type RedactionPreview struct {
	Events int64           `json:"events"` // that would be changed
	Rules  []RedactionRule `json:"rules"`
}

// A RedactionRule is one key or pattern, and what it has found.
type RedactionRule struct {
	Rule    string            `json:"rule"`  // such as "key password" or "secrets: AWS access key"
	Count   int64             `json:"count"` // matches
	Samples []RedactionSample `json:"samples,omitempty"`
}

// A RedactionSample is a match of which next to nothing is shown.
type RedactionSample struct {
	Offset int64  `json:"offset"` // of the event in which it begins
	Masked string `json:"masked"`
}
