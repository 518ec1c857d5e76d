package exchange

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// version is the version of Tapedeck's export formats.
const version = 1

// A header is the first line of an NDJSON export, and the beginning of a JSON
// export.
type header struct {
	Tapedeck int              `json:"tapedeck"`       // the version of the format
	View     string           `json:"view,omitempty"` // [viewEffective], or absent for all events
	Session  tapedeck.Session `json:"session"`
}

const viewEffective = "effective"

func (s *Source) head() header {
	h := header{Tapedeck: version, Session: s.header()}
	if s.Effective {
		h.View = viewEffective
	}
	return h
}

// marshal encodes like the protocols: a page that shows < and > has to escape
// them.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func writeNDJSON(w *output, src *Source) error {
	h, err := marshal(src.head())
	if err != nil {
		return err
	}
	w.string(string(h), "\n")
	for e, err := range src.all() {
		if err != nil {
			return err
		}
		if err := writeEvent(w, &e); err != nil {
			return err
		}
		w.string("\n")
	}
	return nil
}

// writeEvent writes the envelope. For an event that was not changed, it is that of
// the store, byte for byte.
func writeEvent(w *output, e *tapedeck.Event) error {
	b, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func writeJSON(w *output, src *Source) error {
	h, err := marshal(src.head())
	if err != nil {
		return err
	}
	w.string(string(h[:len(h)-1]), ",\"events\":[")
	var c view.Conversation
	c.Keep()
	if !src.Effective {
		c.UseTimeline(src.Timeline, src.Session.Head)
	}
	sep := "\n"
	for e, err := range src.all() {
		if err != nil {
			return err
		}
		w.string(sep)
		sep = ",\n"
		if err := writeEvent(w, &e); err != nil {
			return err
		}
		if src.inForce(&e) {
			c.Apply(&e)
		}
	}
	c.Advance(src.Session.Head)
	s := c.Snapshot()
	s.Session.ID = src.Session.ID
	b, err := marshal(s)
	if err != nil {
		return err
	}
	w.string("\n],\"snapshot\":", string(b), "}\n")
	return nil
}
