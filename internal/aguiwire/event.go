package aguiwire

import (
	"encoding/json"
	"io"
	"iter"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// Frames yields the events in an event stream, undecoded, until r ends. The last frame
// needs no empty line after it: many agents leave it out. limit is the size of the
// largest event, in bytes.
func Frames(r io.Reader, limit int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for data, err := range sse.Values(r, limit, nil) {
			if !yield(data, err) {
				return
			}
		}
	}
}

// Event returns an event of AG-UI as an event of the log. Its data is raw, unchanged:
// the form of the log is the business of package order. what names the event in errors,
// which are [tapedeck.Invalid]. A type of a later version is accepted. A type with a dot
// is not: such types are Tapedeck's own.
func Event(what string, raw json.RawMessage) (tapedeck.Event, error) {
	e := tapedeck.Event{Type: jsonobj.StringOf(jsonobj.Member(raw, "type")), Data: raw}
	switch {
	case !json.Valid(raw) || jsonobj.Read(raw).Bad:
		return e, tapedeck.Errorf(tapedeck.Invalid, "%s is not a JSON object", what)
	case e.Type == "" || strings.Contains(e.Type, "."):
		return e, tapedeck.Errorf(tapedeck.Invalid, "%s has the type %.100q, which is not one of AG-UI", what, e.Type)
	}
	return e, nil
}
