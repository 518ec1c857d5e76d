package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// maxHeader is the longest value of a header that is stored.
const maxHeader = 1024

// readBody reads the whole body into memory of its own, which becomes what is
// stored: so it is neither pooled nor larger than need be.
func (h *handler) readBody(r *http.Request) ([]byte, error) {
	n := r.ContentLength
	switch {
	case n > h.MaxBody:
		return nil, h.tooLarge()
	case n >= 0 && n <= trusted:
		return readExactly(r.Body, make([]byte, n))
	case n > trusted:
		b, err := readExactly(r.Body, make([]byte, trusted))
		if err != nil {
			return nil, err
		}
		whole := make([]byte, n)
		_, err = readExactly(r.Body, whole[copy(whole, b):])
		return whole, err
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, h.MaxBody+1))
	if err != nil {
		return nil, brokenOff(err)
	}
	if int64(len(b)) > h.MaxBody {
		return nil, h.tooLarge()
	}
	return bytes.Clone(b), nil // without the slack of reading
}

// trusted is how much memory a client gets for a promise. Who promises more must
// first send so much.
const trusted = 256 << 10

func readExactly(r io.Reader, b []byte) ([]byte, error) {
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, brokenOff(err)
	}
	return b, nil
}

func brokenOff(err error) error {
	return tapedeck.Errorf(tapedeck.Invalid, "the body broke off before its end: %w", err)
}

func (h *handler) tooLarge() error {
	return tapedeck.Errorf(tapedeck.TooLarge, "the body has more than %d bytes, the most that is taken at once", h.MaxBody).
		WithHint("divide it into several appends")
}

// mediaType returns a content type without its parameters.
func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(t)
}

func isJSON(contentType string) bool {
	return contentType == jsonType || strings.EqualFold(mediaType(contentType), jsonType)
}

// sameType reports whether two content types are the same to the protocol:
// in any case, whatever the parameters.
func sameType(a, b string) bool { return a == b || strings.EqualFold(mediaType(a), mediaType(b)) }

// decodeMessages divides a body into what an append stores: the messages of
// JSON, else all of it as one.
func decodeMessages(contentType string, body []byte) ([][]byte, error) {
	if !isJSON(contentType) {
		return [][]byte{body}, nil
	}
	return splitJSON(body)
}

// splitJSON returns the elements of a JSON array, or the one value that is not
// an array. Each is without insignificant space, so it is on one line. They
// share memory with body unless it has such space.
func splitJSON(body []byte) ([][]byte, error) {
	if err := checkJSON(body); err != nil {
		return nil, err
	}
	body = bytes.Trim(body, " \t\r\n")
	if body[0] != '[' {
		return [][]byte{compact(body)}, nil
	}
	return split(compact(body)), nil
}

func checkJSON(body []byte) error {
	var syntax *json.SyntaxError
	switch {
	case !utf8.Valid(body): // encoding/json would let it pass
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not valid UTF-8")
	case json.Valid(body):
		return nil
	case errors.As(json.Unmarshal(body, &json.RawMessage{}), &syntax):
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not JSON: %v, at byte %d", syntax, syntax.Offset)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the body is not JSON")
}

// compact returns valid JSON without insignificant space: itself, if it has none.
func compact(b []byte) []byte {
	inString := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c <= ' ':
			buf := bytes.NewBuffer(make([]byte, 0, len(b)))
			_ = json.Compact(buf, b) // cannot fail: b is valid
			return buf.Bytes()
		}
	}
	return b
}

// split returns the elements of a valid, compact array.
func split(b []byte) [][]byte {
	b = b[1 : len(b)-1]
	if len(b) == 0 {
		return nil
	}
	var out [][]byte
	start, depth, inString := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			inString = !inString
		case inString:
			if c == '\\' {
				i++
			}
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 0:
			out = append(out, b[start:i:i])
			start = i + 1
		}
	}
	return append(out, b[start:len(b):len(b)])
}

// isTrue reports whether a header of the protocol that is true or absent is true.
func isTrue(h http.Header, name string) bool {
	v := h[name]
	return len(v) > 0 && strings.EqualFold(v[0], "true")
}

// header returns the value of a header that will be stored; "" if there is none.
func header(h http.Header, name string) (string, error) {
	v := h[name]
	if len(v) == 0 {
		return "", nil
	}
	if len(v) > 1 || len(v[0]) > maxHeader || !utf8.ValidString(v[0]) {
		return "", tapedeck.Errorf(tapedeck.Invalid, "the header %s has several values, more than %d bytes, or is not UTF-8", name, maxHeader)
	}
	return v[0], nil
}

// decodeProducer reads the headers of an idempotent producer, nil if there are none.
func decodeProducer(h http.Header) (*tapedeck.Producer, error) {
	id, epoch, seq := h[hProducer], h[hEpoch], h[hProducerSeq]
	if len(id)+len(epoch)+len(seq) == 0 {
		return nil, nil
	}
	if len(id) != 1 || len(epoch) != 1 || len(seq) != 1 {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "a producer sends Producer-Id, Producer-Epoch and Producer-Seq, each once")
	}
	name, err := header(h, hProducer)
	if err != nil {
		return nil, err
	}
	e, ok := parseDigits(epoch[0])
	s, ok2 := parseDigits(seq[0])
	const most = 1<<53 - 1 // what JavaScript can count to
	if name == "" || !ok || !ok2 || e > most || s > most {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "Producer-Id is empty, or Producer-Epoch or Producer-Seq is not a number from 0 to 2^53-1")
	}
	return &tapedeck.Producer{ID: name, Epoch: e, Seq: s}, nil
}

// decodeExpect reads If-Match: the offset at which an append is to land, as the
// protocol writes it or as a plain number, with or without quotes.
func decodeExpect(h http.Header) (*int64, error) {
	v := h["If-Match"]
	if len(v) == 0 || v[0] == "*" {
		return nil, nil
	}
	s := v[0]
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if o, ok := parseOffset(s); ok && o.k == 0 {
		return &o.n, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 && len(v) == 1 {
		return &n, nil
	}
	return nil, tapedeck.Errorf(tapedeck.Invalid, "If-Match %.64q is not an offset", v[0]).
		WithHint(`send the Stream-Next-Offset that you know, in quotes, or a number such as "17"`)
}

// decodeAppend reads the headers of a POST.
func decodeAppend(h http.Header) (tapedeck.Append, error) {
	a := tapedeck.Append{Close: isTrue(h, hClosed)}
	var err error
	if a.Producer, err = decodeProducer(h); err != nil {
		return a, err
	}
	if a.StreamSeq, err = header(h, hSeq); err != nil {
		return a, err
	}
	a.Expect, err = decodeExpect(h)
	return a, err
}

// A lifetime is what a PUT says about how long a stream lives.
type lifetime struct {
	ttl     time.Duration
	expires time.Time
	given   bool
}

func decodeLifetime(h http.Header) (l lifetime, err error) {
	ttl, expires := h[hTTL], h[hExpires]
	switch {
	case len(ttl)+len(expires) == 0:
		return l, nil
	case len(ttl)+len(expires) > 1:
		return l, tapedeck.Errorf(tapedeck.Invalid, "Stream-TTL and Stream-Expires-At cannot be given together, or twice")
	case len(ttl) == 1:
		n, ok := parseCount(ttl[0])
		if !ok || n > int64(maxTTL/time.Second) {
			return l, tapedeck.Errorf(tapedeck.Invalid, "Stream-TTL %.64q is not a number of seconds up to %d", ttl[0], maxTTL/time.Second)
		}
		// No time at all is a time too short to be read in; 0 means for ever to a store.
		return lifetime{ttl: max(time.Duration(n)*time.Second, 1), given: true}, nil
	}
	t, err := time.Parse(time.RFC3339, expires[0])
	if err != nil || t.Year() > 9999 {
		return l, tapedeck.Errorf(tapedeck.Invalid, "Stream-Expires-At %.64q is not a time as in RFC 3339", expires[0])
	}
	return lifetime{expires: t.UTC(), given: true}, nil
}

// maxTTL is a hundred years.
const maxTTL = 100 * 365 * 24 * time.Hour

// A query is what a read asks for.
type query struct {
	at     offset
	start  bool   // an offset was given
	now    bool   // from the tail, wherever that is
	live   string // "", long-poll or sse
	cursor string
	limit  int // most messages; 0 for no limit of its own
	filter filter
}

// decodeQuery reads the parameters of a GET. It does without a map, for this is
// done for every read.
func decodeQuery(r *http.Request) (q query, err error) {
	rest := r.URL.RawQuery
	for rest != "" {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		name, value, _ := strings.Cut(pair, "=")
		if strings.ContainsAny(value, "%+") {
			if value, err = url.QueryUnescape(value); err != nil {
				return q, tapedeck.Errorf(tapedeck.Invalid, "the query parameter %.64q is not well escaped", name)
			}
		}
		if err := q.set(name, value); err != nil {
			return q, err
		}
	}
	if id := r.Header["Last-Event-Id"]; len(id) > 0 && id[0] != "" && q.live == "sse" {
		q.start = false // EventSource sends the offset it began with again
		if err := q.setOffset(id[0]); err != nil {
			return q, err
		}
	}
	if q.live != "" && !q.start {
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
	return nil // the protocol wants unknown parameters ignored
}

func (q *query) setOffset(v string) error {
	if q.start {
		return tapedeck.Errorf(tapedeck.Invalid, "the offset is given more than once")
	}
	q.start = true
	switch v {
	case "-1":
		return nil
	case "now":
		q.now = true
		return nil
	}
	var ok bool
	if q.at, ok = parseOffset(v); !ok {
		return badOffset(v)
	}
	return nil
}
