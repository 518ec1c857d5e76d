package durable

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A query has the parameters of a read.
type query struct {
	at        offset
	gen       int64  // the incarnation that at is of; 0 if the client does not say it
	hasOffset bool   // an offset was given
	now       bool   // the read begins at the tail
	live      string // "", long-poll or sse
	cursor    string
	limit     int // the largest number of messages; 0 for no limit
	filter    filter
}

// decodeQuery reads the parameters of a GET. It allocates no map, because every read
// calls it.
func decodeQuery(r *http.Request) (q query, err error) {
	rest := r.URL.RawQuery
	for rest != "" {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		name, value, _ := strings.Cut(pair, "=")
		if strings.ContainsAny(value, "%+") {
			if value, err = url.QueryUnescape(value); err != nil {
				return q, tapedeck.Errorf(tapedeck.Invalid, "the query parameter %.64q is not escaped correctly", name)
			}
		}
		if err := q.set(name, value); err != nil {
			return q, err
		}
	}
	if id := r.Header["Last-Event-Id"]; len(id) > 0 && id[0] != "" && q.live == "sse" {
		q.hasOffset = false // EventSource also sends the offset of its first request again
		if err := q.setOffset(id[0]); err != nil {
			return q, err
		}
	}
	if q.live != "" && !q.hasOffset {
		return q, tapedeck.Errorf(tapedeck.Invalid, "a live read needs an offset").WithHint("add offset=-1 for the start or offset=now for the end")
	}
	return q, nil
}

func (q *query) set(name, value string) error {
	switch name {
	case "offset":
		return q.setOffset(value)
	case "live":
		if value != "long-poll" && value != "sse" {
			return tapedeck.Errorf(tapedeck.Invalid, "there is no live mode %.64q", value).WithHint("use long-poll or sse")
		}
		q.live = value
	case "cursor":
		q.cursor = value
	case "limit":
		n, ok := parseCount(value)
		if !ok || n < 1 || n > maxRecords {
			return tapedeck.Errorf(tapedeck.Invalid, "the limit %.64q is not a number from 1 to %d", value, maxRecords)
		}
		q.limit = int(n)
	case "type":
		q.filter.types = append(q.filter.types, strings.Split(value, ",")...)
	case "channel":
		q.filter.channels = append(q.filter.channels, strings.Split(value, ",")...)
	case "thread":
		q.filter.threads = append(q.filter.threads, strings.Split(value, ",")...)
	}
	return nil // the protocol ignores unknown parameters
}

func (q *query) setOffset(v string) error {
	if q.hasOffset {
		return tapedeck.Errorf(tapedeck.Invalid, "the offset is given more than once")
	}
	q.hasOffset = true
	switch v {
	case "-1":
		return nil
	case "now":
		q.now = true
		return nil
	}
	p, ok := parsePlace(v)
	if !ok {
		return badOffset(v)
	}
	q.at, q.gen = p.offset, p.gen
	return nil
}
