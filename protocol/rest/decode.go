package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/intake"
)

// target returns the session's id in the path of a request without parameters.
func target(r *http.Request) (string, error) {
	id, err := httpapi.SessionID(r)
	if err == nil {
		err = httpapi.ParseQuery(r).Err
	}
	return id, err
}

// mediaType returns the media type of the body, "" if it has none or is not in UTF-8.
func mediaType(r *http.Request) string {
	t, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return ""
	}
	return t
}

// unsupported returns the error of a body that is not of a wanted type.
func unsupported(r *http.Request, want string) error {
	have := r.Header.Get("Content-Type")
	if have == "" {
		return tapedeck.Errorf(tapedeck.Unsupported, "the body has no content type").
			WithHint("send Content-Type: %s", want)
	}
	return tapedeck.Errorf(tapedeck.Unsupported, "a body of type %q is not understood here", have).
		WithHint("send Content-Type: %s", want)
}

// decode decodes the body, a JSON object with the members of T.
func decode[T any](h *handler, w http.ResponseWriter, r *http.Request) (T, error) {
	var v T
	body, err := h.read(w, r)
	if err != nil {
		return v, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return v, tapedeck.Errorf(tapedeck.Invalid, "the body is empty; a JSON object is expected")
	}
	return v, decodeObject(body, &v)
}

// decodeOptional is decode for a body that may be absent.
func decodeOptional[T any](h *handler, w http.ResponseWriter, r *http.Request) (T, error) {
	if r.ContentLength == 0 {
		var zero T
		return zero, nil
	}
	return decode[T](h, w, r)
}

// read returns the body, which must be JSON by its content type.
func (h *handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if mediaType(r) != "application/json" {
		return nil, unsupported(r, "application/json")
	}
	limited, err := limitBody(w, r, h.MaxBody)
	if err != nil {
		return nil, err
	}
	body, err := intake.ReadAll(limited, r.ContentLength)
	return body, readError(err)
}

// limitBody returns the body, which fails after limit bytes. If its announced length is
// larger, nothing is read.
func limitBody(w http.ResponseWriter, r *http.Request, limit int64) (io.Reader, error) {
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	return http.MaxBytesReader(w, r.Body, limit), nil
}

// readError returns the error of a body that could not be read. The client caused it.
func readError(err error) error {
	var tooLong *http.MaxBytesError
	if err == nil || errors.As(err, &tooLong) {
		return err
	}
	if refused, _ := intake.Refused(err); refused != nil {
		return refused
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the body could not be read to its end").Because(err)
}

// decodeObject decodes one JSON object. An unknown member is an error, because the client
// meant something by it.
func decodeObject(b []byte, into any) error {
	if !utf8.Valid(b) { // encoding/json would replace it with U+FFFD
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not valid UTF-8")
	}
	if first := bytes.TrimLeft(b, " \t\r\n"); len(first) > 0 && first[0] != '{' && json.Valid(b) {
		return tapedeck.Errorf(tapedeck.Invalid, "the body is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return jsonError(b, err, into)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return tapedeck.Errorf(tapedeck.Invalid, "something follows the JSON object in the body")
	}
	if err := checkMembers(b, membersOf(into)); err != nil {
		return err
	}
	return checkInside(b)
}

// checkInside refuses an object inside of the members that has a name twice. Here the case of
// names matters: they may be those of labels or variables.
func checkInside(b []byte) error {
	type level struct {
		names map[string]bool // nil for an array
		name  string          // the last one
		value bool            // the next token is a value
	}
	var levels []level
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // the value does not matter, and may be out of range
	for {
		t, err := d.Token()
		if err != nil {
			return nil //nolint:nilerr // the end; malformed JSON is refused elsewhere
		}
		top := len(levels) - 1
		if name, ok := t.(string); ok && top >= 0 && levels[top].names != nil && !levels[top].value {
			if levels[top].names[name] {
				return tapedeck.Errorf(tapedeck.Invalid, "the member %q is there twice in %q", name, levels[max(0, top-1)].name)
			}
			levels[top].names[name] = true
			levels[top].name, levels[top].value = name, true
			continue
		}
		switch t {
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:top]
			continue
		}
		if top >= 0 {
			levels[top].value = false
		}
		switch t {
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}})
		case json.Delim('['):
			inside := ""
			if top >= 0 {
				inside = levels[top].name
			}
			levels = append(levels, level{name: inside})
		}
	}
}

// checkMembers refuses a JSON object that has a member twice, or that lacks a required
// one. Of a member that is there twice, encoding/json uses the last one, and other
// readers use the first. As in encoding/json, the case of names does not matter. Of
// objects inside members, see checkInside.
func checkMembers(b []byte, members []member) error {
	d := json.NewDecoder(bytes.NewReader(b))
	_, _ = d.Token() // the brace; b is known to be an object
	seen, null := make([]string, 0, 8), make([]string, 0, 8)
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil //nolint:nilerr // malformed JSON is refused elsewhere
		}
		if containsFold(seen, name) {
			return tapedeck.Errorf(tapedeck.Invalid, "the member %q is there twice", name)
		}
		seen = append(seen, name)
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil //nolint:nilerr // as above
		}
		if string(value) == "null" {
			null = append(null, name)
		}
		n := slices.IndexFunc(members, func(m member) bool { return strings.EqualFold(m.name, name) })
		if n < 0 || len(members[n].members) == 0 {
			continue
		}
		for _, object := range objectsIn(value) {
			if err := checkMembers(object, members[n].members); err != nil {
				return err
			}
		}
	}
	for _, m := range members {
		if m.required && (!containsFold(seen, m.name) || containsFold(null, m.name)) {
			err := tapedeck.Errorf(tapedeck.Invalid, "the member %q is missing", m.name)
			err.Hint = missingHints[m.name]
			return err
		}
	}
	return nil
}

// objectsIn returns the object that a value is, or the objects of the list that it is.
func objectsIn(value json.RawMessage) (objects []json.RawMessage) {
	switch value[0] {
	case '{':
		return []json.RawMessage{value}
	case '[':
		_ = json.Unmarshal(value, &objects) // it was decoded before
	}
	return slices.DeleteFunc(objects, func(o json.RawMessage) bool { return o[0] != '{' })
}

// missingHints say what to give for some of the required members.
var missingHints = map[string]string{
	"agent_name":  "give the name of the agent",
	"from_offset": "give the offset of the first event to revert",
}

const timeHint = `a time is written as "2026-02-01T00:00:00Z" (RFC 3339)`

const rangeHint = `the event at offset 3 is the range {"from":3,"to":4}: the event at to is not in it`

// formHints show the form of values that a type name does not explain.
var formHints = map[reflect.Type]string{
	reflect.TypeFor[time.Time]():              timeHint,
	reflect.TypeFor[*time.Time]():             timeHint,
	reflect.TypeFor[tapedeck.OffsetRange]():   rangeHint,
	reflect.TypeFor[[]tapedeck.OffsetRange](): rangeHint,
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
}

// jsonError describes what is wrong with JSON that should be decoded into a struct.
func jsonError(b []byte, err error, into any) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return tapedeck.Errorf(tapedeck.Invalid, "the JSON ends too early")
	case errors.As(err, &syntax):
		return tapedeck.Errorf(tapedeck.Invalid, "the JSON is malformed near byte %d", syntax.Offset)
	case errors.As(err, &typ):
		err := tapedeck.Errorf(tapedeck.Invalid, "%s must be %s, not %s", memberName(into, typ), typeName(typ.Type), valueName(typ.Value))
		err.Hint = formHints[typ.Type]
		return err
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no member %s here", name).
			WithHint("the members are %s", strings.Join(namesOf(membersOf(into)), ", "))
	}
	if wrong := wrongMember(b, into); wrong != nil {
		return wrong
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the JSON cannot be understood").Because(err)
}

// wrongMember returns the error of a member with a value that its type does not accept by
// itself, such as a time: encoding/json does not name it. It returns nil if there is none.
func wrongMember(b []byte, into any) error {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(b, &values) // no object has no members
	for _, f := range reflect.VisibleFields(reflect.TypeOf(into).Elem()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for given, value := range values {
			if name == "" || !strings.EqualFold(given, name) || json.Unmarshal(value, reflect.New(f.Type).Interface()) == nil {
				continue
			}
			err := tapedeck.Errorf(tapedeck.Invalid, "the member %q cannot be %.64s", name, value)
			err.Hint = formHints[f.Type]
			return err
		}
	}
	return nil
}

// typeName returns the name of a Go type in JSON.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return typeName(t.Elem())
	default:
		return "a whole number in range"
	}
}

// valueName returns the name that encoding/json uses for a value, with its article.
func valueName(v string) string {
	switch kind, _, _ := strings.Cut(v, " "); kind {
	case "array", "object":
		return "an " + kind
	case "bool":
		return "true or false"
	}
	return "a " + v
}

// memberName names the member of the struct at v that is wrong. If it is a map or an
// array, one of the values is wrong, and encoding/json does not say which one.
func memberName(v any, err *json.UnmarshalTypeError) string {
	name := err.Field
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if f.Anonymous { // its name is no part of the path in the body
			name = strings.TrimPrefix(name, f.Name+".")
		}
	}
	for _, m := range membersOf(v) {
		if m.name == name && (m.kind == reflect.Map || m.kind == reflect.Slice) && err.Type.Kind() != m.kind {
			return fmt.Sprintf("each value in the member %q", name)
		}
	}
	return fmt.Sprintf("the member %q", name)
}

// A member is one that the JSON object in a body may have.
type member struct {
	name     string
	kind     reflect.Kind // of its Go type
	required bool
	members  []member // of the object that its value is, or of each object in it, if that is a struct
}

// membersOf returns the members of the struct at v, with those of the structs that it
// embeds. A member is required unless its tag says that it may be omitted.
func membersOf(v any) []member { return membersOfType(reflect.TypeOf(v).Elem()) }

func membersOfType(t reflect.Type) (out []member) {
	for _, f := range reflect.VisibleFields(t) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		m := member{name: name, kind: f.Type.Kind(), required: option == ""}
		of := f.Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			m.members = membersOfType(of)
		}
		out = append(out, m)
	}
	return out
}

func namesOf(members []member) []string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.name
	}
	return names
}

// given returns raw, or nil for null.
func given(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
