package durable

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A listing is the answer to GET /v1/stream, which is an extension of the protocol.
type listing struct {
	Streams []listed `json:"streams"`
	Cursor  string   `json:"cursor,omitempty"` // of the next page; absent on the last page
}

// A listed is a stream in a listing.
type listed struct {
	Path        string    `json:"path"`
	URL         string    `json:"url"`
	ContentType string    `json:"content_type"`
	NextOffset  string    `json:"next_offset"`
	Closed      bool      `json:"closed,omitempty"`
	Created     time.Time `json:"created_at"`
	Updated     time.Time `json:"updated_at"`
	TTL         int64     `json:"ttl,omitempty"` // seconds
	Expires     time.Time `json:"expires_at,omitzero"`
}

// list answers with the streams whose path begins with a prefix, newest first.
func (h *handler) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f := tapedeck.Filter{Kind: tapedeck.KindStream, Cursor: q.Get("cursor"), Limit: 100}
	if v := q.Get("limit"); v != "" {
		n, ok := parseCount(v)
		if !ok || n < 1 || n > 1000 {
			return tapedeck.Errorf(tapedeck.Invalid, "the limit %.64q is not a number from 1 to 1000", v)
		}
		f.Limit = int(n)
	}
	out, err := h.listPrefix(r.Context(), f, tapedeck.StreamPrefix+q.Get("prefix"))
	if err != nil {
		return err
	}
	b, err := json.Marshal(out)
	if err != nil {
		return err
	}
	head := w.Header()
	head["Content-Type"] = valJSON
	head["Cache-Control"] = valNoStore
	_, _ = w.Write(b)
	return nil
}

// maxListed is how many pages of the catalogue one answer reads at most.
const maxListed = 10

// listPrefix lists by prefix. The catalogue finds the ids that contain a text, so ids
// with the text elsewhere are left out, and a page may be short.
func (h *handler) listPrefix(ctx context.Context, f tapedeck.Filter, prefix string) (listing, error) {
	out := listing{Streams: []listed{}}
	if prefix != tapedeck.StreamPrefix {
		f.Query = prefix
	}
	for range maxListed {
		page, err := h.Store.List(ctx, f)
		if err != nil {
			return out, err
		}
		for i := range page.Sessions {
			if s := &page.Sessions[i]; strings.HasPrefix(s.ID, prefix) {
				out.Streams = append(out.Streams, listedOf(s))
			}
		}
		if f.Cursor, out.Cursor = page.Next, page.Next; page.Next == "" || len(out.Streams) > 0 {
			break
		}
	}
	return out, nil
}

func listedOf(s *tapedeck.Session) listed {
	path := strings.TrimPrefix(s.ID, tapedeck.StreamPrefix)
	return listed{
		Path: path, URL: (&url.URL{Path: Root + "/" + path}).EscapedPath(), ContentType: s.ContentType,
		NextOffset: offset{n: s.Head}.String(), Closed: s.Closed, Created: s.Created, Updated: s.Updated,
		TTL: int64(s.TTL / time.Second), Expires: s.Expires,
	}
}
