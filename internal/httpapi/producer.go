package httpapi

import (
	"net/http"

	"github.com/tapedeck/tapedeck"
)

// Producer returns the producer in the headers of an append, nil if there is none.
func Producer(r *http.Request) (*tapedeck.Producer, error) {
	id, epoch, seq := r.Header.Get("Producer-Id"), r.Header.Get("Producer-Epoch"), r.Header.Get("Producer-Seq")
	if id == "" && epoch == "" && seq == "" {
		return nil, nil
	}
	if id == "" || epoch == "" || seq == "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "Producer-Id, Producer-Epoch and Producer-Seq go together")
	}
	if err := tapedeck.CheckName("Producer-Id", id); err != nil {
		return nil, err
	}
	p := &tapedeck.Producer{ID: id}
	for name, v := range map[string]struct {
		text string
		into *int64
	}{"Producer-Epoch": {epoch, &p.Epoch}, "Producer-Seq": {seq, &p.Seq}} {
		n, ok := ParseOffset(v.text)
		if !ok {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s must be a whole number from 0, not %q", name, v.text)
		}
		*v.into = n
	}
	return p, nil
}
