package exchange

import (
	"bufio"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// The formats of exports.
const (
	JSON      = "json"      // one document: the session, its events, and their conversation
	NDJSON    = "ndjson"    // a header and every event as it is stored, one per line; it can be imported
	Markdown  = "markdown"  // a transcript for people
	CSV       = "csv"       // one row per event
	HTML      = "html"      // a page that plays the session, with everything in it
	Asciicast = "asciicast" // a terminal, as asciinema plays it
)

// A Source is a session to export. The exported events, those below an offset, do
// not change during the export.
type Source struct {
	Session   tapedeck.Session // its head is the end of the export
	Events    func() iter.Seq2[tapedeck.Event, error]
	Timeline  *view.Timeline // at the head
	Effective bool           // only active events, and no jumps
	Terminal  string         // of Asciicast; "" for the only one
	Redactor  *Redactor      // nil for none
	Player    Player         // of HTML
	Look      Look           // of HTML
	Now       time.Time      // the time of the export, which HTML shows

	redacted bool // the redactor has left something out

	limit int // the largest number of bytes of events in HTML; 0 for [maxRecording]
}

// An encoding writes a session in one format.
type encoding struct {
	media, suffix string
	check         func(*Source) error // called before the first byte; nil checks nothing
	write         func(*output, *Source) error
}

var encodings = map[string]encoding{
	JSON:      {"application/json; charset=utf-8", ".json", nil, writeJSON},
	NDJSON:    {"application/x-ndjson; charset=utf-8", ".ndjson", nil, writeNDJSON},
	Markdown:  {"text/markdown; charset=utf-8", ".md", nil, writeMarkdown},
	CSV:       {"text/csv; charset=utf-8; header=present", ".csv", nil, writeCSV},
	HTML:      {"text/html; charset=utf-8", ".html", checkRecording, writeHTML},
	Asciicast: {"application/x-asciicast; charset=utf-8", ".cast", chooseTerminal, writeCast},
}

// ExportFormats returns the names of the formats of exports.
func ExportFormats() []string { return slices.Sorted(maps.Keys(encodings)) }

// Encode returns the session as a file. It checks the whole request first: Write
// returns only errors of reading or of w. An unknown format is [tapedeck.Invalid].
func Encode(format string, src Source) (api.Export, error) {
	enc, ok := encodings[format]
	if !ok {
		return api.Export{}, tapedeck.Errorf(tapedeck.Invalid, "there is no export format %q", short(format)).
			WithHint("the formats are: %s", strings.Join(ExportFormats(), ", "))
	}
	if err := src.learn(); err != nil {
		return api.Export{}, err
	}
	if enc.check != nil {
		if err := enc.check(&src); err != nil {
			return api.Export{}, err
		}
	}
	return api.Export{
		Name: fileName(src.Session.ID) + enc.suffix, MediaType: enc.media,
		Write: func(w io.Writer) error {
			out := &output{Writer: bufio.NewWriterSize(w, 64<<10)}
			if err := enc.write(out, &src); err != nil {
				return err
			}
			return out.Flush()
		},
	}, nil
}

// fileName returns an id as a file name; an id may have a colon.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		if r == ':' || r == '@' {
			return '_'
		}
		return r
	}, id)
}

// Preview returns what the redactor would leave out of an export.
func Preview(src Source) (api.RedactionPreview, error) {
	if src.Redactor == nil {
		return api.RedactionPreview{Rules: []api.RedactionRule{}}, nil
	}
	err := src.learn()
	return src.Redactor.Preview(), err
}

// learn shows all events to the redactor.
func (s *Source) learn() error {
	if s.Redactor == nil {
		return nil
	}
	for e, err := range s.Events() {
		if err != nil {
			return err
		}
		if s.has(&e) {
			s.Redactor.Learn(&e)
		}
	}
	s.Redactor.Learn(nil)
	given := s.Session
	s.Session = s.Redactor.Session(given)
	s.redacted = s.Redactor.Preview().Events > 0 || s.Session.Title != given.Title || s.Session.Owner != given.Owner || !maps.Equal(s.Session.Labels, given.Labels)
	return nil
}

// has reports whether an event is exported.
func (s *Source) has(e *tapedeck.Event) bool {
	if !s.Effective {
		return true
	}
	_, jump := e.Jump()
	return !jump && s.inForce(e)
}

func (s *Source) inForce(e *tapedeck.Event) bool {
	return e.Channel == tapedeck.ChannelSession || s.Timeline == nil || s.Timeline.Has(e.Offset, e.Thread, s.Session.Head)
}

// all yields the exported events, redacted.
func (s *Source) all() iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for e, err := range s.Events() {
			if err != nil {
				yield(e, err)
				return
			}
			if !s.has(&e) {
				continue
			}
			if s.Redactor != nil {
				e = s.Redactor.Event(e)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// header returns the session's entry for an export, without its open runs, which
// have no meaning elsewhere.
func (s *Source) header() tapedeck.Session {
	h := s.Session
	h.Runs = nil
	return h
}

// An output writes a file. It reports an error of the file at the end, as
// [bufio.Writer] does.
type output struct{ *bufio.Writer }

func (o *output) string(parts ...string) {
	for _, p := range parts {
		_, _ = o.WriteString(p) // the writer keeps the error
	}
}

// failed returns the error of the file, so that the log is not read in vain.
func (o *output) failed() error {
	_, err := o.Write(nil)
	return err
}
