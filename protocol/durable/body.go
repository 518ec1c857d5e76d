package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/hangup"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// readBody reads the whole body. The answer is sent soon, so until then the connection is
// not watched for a disconnect.
func (h *handler) readBody(r *http.Request) ([]byte, error) {
	b, err := h.readAll(r)
	if err == nil {
		hangup.Ignore(r.Context())
	}
	return b, err
}

// readAll reads the body into new memory, which the store keeps: so the memory is neither
// pooled nor larger than necessary.
func (h *handler) readAll(r *http.Request) ([]byte, error) {
	if r.ContentLength > h.MaxBody {
		return nil, h.tooLarge()
	}
	var limited io.Reader = r.Body
	if r.ContentLength < 0 {
		limited = io.LimitReader(r.Body, h.MaxBody+1)
	}
	b, err := intake.ReadAll(limited, r.ContentLength)
	switch {
	case err != nil:
		return nil, brokenOff(err)
	case int64(len(b)) > h.MaxBody:
		return nil, h.tooLarge()
	}
	return b, nil
}

func brokenOff(err error) error {
	if refused, _ := intake.Refused(err); refused != nil {
		return refused
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the body ended early: %w", err)
}

func (h *handler) tooLarge() error {
	return tapedeck.Errorf(tapedeck.TooLarge, "the body has more than %d bytes, the limit of one append", h.MaxBody).
		WithHint("divide it into several appends")
}

// decodeMessages divides a body into the messages of JSON. A body of another type is one
// message.
func decodeMessages(contentType string, body []byte) ([][]byte, error) {
	if !isJSON(contentType) {
		return [][]byte{body}, nil
	}
	return splitJSON(body)
}

// splitJSON returns the elements of a JSON array, or a value that is not an array. They
// have no insignificant space, so each is one line. They share memory with body if it has
// no such space.
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
	case !utf8.Valid(body): // encoding/json accepts it
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not valid UTF-8")
	case json.Valid(body):
		return checkNesting(body)
	case errors.As(json.Unmarshal(body, &json.RawMessage{}), &syntax):
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not JSON: %v, at byte %d", syntax, syntax.Offset)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the body is not JSON")
}

// checkNesting refuses a message that could not be exchanged. An array around the
// messages is one level more.
func checkNesting(body []byte) error {
	if len(body) > 2*jsonobj.MaxNesting && jsonobj.Nesting(body) > jsonobj.MaxNesting+1 {
		return tapedeck.Errorf(tapedeck.Invalid, "the body is nested more than %d levels deep", jsonobj.MaxNesting)
	}
	return nil
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
