package durable

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// maxHeader is the longest value of a header that is stored.
const maxHeader = 1024

// mediaType returns a content type without its parameters.
func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(t)
}

func isJSON(contentType string) bool {
	return contentType == jsonType || strings.EqualFold(mediaType(contentType), jsonType)
}

// sameType reports whether two content types are the same in the protocol, which ignores
// case and parameters.
func sameType(a, b string) bool { return a == b || strings.EqualFold(mediaType(a), mediaType(b)) }

// isTrue reports whether a header of the protocol is true; otherwise it is absent.
func isTrue(h http.Header, name string) bool {
	v := h[name]
	return len(v) > 0 && strings.EqualFold(v[0], "true")
}

// header returns the value of a header that will be stored, "" if there is none.
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
	const limit = 1<<53 - 1 // the largest integer that JavaScript counts to
	if name == "" || !ok || !ok2 || e > limit || s > limit {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "Producer-Id is empty, or Producer-Epoch or Producer-Seq is not a number from 0 to 2^53-1")
	}
	return &tapedeck.Producer{ID: name, Epoch: e, Seq: s}, nil
}

// decodeExpect reads If-Match: the offset that the append will get, in the form of the
// protocol or as a plain number, with or without quotes. gen is the incarnation that it is
// of, 0 if the client does not say it.
func decodeExpect(h http.Header) (at *int64, gen int64, err error) {
	v := h["If-Match"]
	if len(v) == 0 || v[0] == "*" {
		return nil, 0, nil
	}
	s := v[0]
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if p, ok := parsePlace(s); ok && p.k == 0 {
		return &p.n, p.gen, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 && len(v) == 1 {
		return &n, 0, nil
	}
	return nil, 0, tapedeck.Errorf(tapedeck.Invalid, "If-Match %.64q is not an offset", v[0]).
		WithHint(`send the Stream-Next-Offset that you know, in quotes, or a number such as "17"`)
}

// decodeAppend reads the headers of a POST to a stream or a session.
func decodeAppend(h http.Header, id string) (*appending, error) {
	a := &appending{Append: tapedeck.Append{Session: id, Close: isTrue(h, hClosed)}}
	var err error
	if a.Producer, err = decodeProducer(h); err != nil {
		return nil, err
	}
	if a.StreamSeq, err = header(h, hSeq); err != nil {
		return nil, err
	}
	if a.Expect, a.expectGen, err = decodeExpect(h); err != nil {
		return nil, err
	}
	a.Check = a.check
	return a, nil
}

// A lifetime is the lifetime of a stream in a PUT.
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
		// A TTL of 0 becomes 1 ms, because a store treats 0 as no expiry.
		return lifetime{ttl: max(time.Duration(n)*time.Second, time.Millisecond), given: true}, nil
	}
	t, err := time.Parse(time.RFC3339, expires[0])
	if err != nil || t.Year() > 9999 {
		return l, tapedeck.Errorf(tapedeck.Invalid, "Stream-Expires-At %.64q is not a time as in RFC 3339", expires[0])
	}
	return lifetime{expires: t.UTC(), given: true}, nil
}

// maxTTL is a hundred years.
const maxTTL = 100 * 365 * 24 * time.Hour
