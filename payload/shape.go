package payload

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A shape says what the value of a member must be.
type shape int

const (
	shapeAny     shape = iota // any JSON value
	shapeSome                 // any value but null
	shapeString               // a string
	shapeID                   // the name of something: a string of 1 to maxRefLen bytes
	shapeInteger              // an integer that JavaScript keeps exact
	shapeNumber               // any number
	shapeBool                 // true or false
	shapeObject               // an object
	shapeArray                // an array
	shapeStrings              // an array of strings
	shapeLabels               // an object whose values are strings
	shapeText                 // the content of a message: a string or an array of parts
	shapePatch                // a JSON Patch
	shapeCuts                 // see [Cut]
	shapeStruct               // an object with a layout
	shapeStructs              // an array of such objects
)

// These are limits of values in an event.
const (
	maxRefLen  = 1024      // bytes of a message id and similar ids
	maxInteger = 1<<53 - 1 // the largest integer that JavaScript keeps exact
)

// String returns the shape as errors name it.
func (s shape) String() string {
	return [...]string{
		"JSON", "a value", "a string", "a string of 1 to 1,024 bytes", "an integer", "a number", "true or false",
		"an object", "an array", "an array of strings", "an object of strings",
		"a string or an array of content parts", "a JSON patch",
		"a list of [bytes, ms] that sums up to the delta", "an object", "an array of objects",
	}[s]
}

// shapeNames are the values of the tag shape.
var shapeNames = map[string]shape{
	"some": shapeSome, "id": shapeID, "object": shapeObject, "array": shapeArray, "text": shapeText, "patch": shapePatch,
}

func shapeOf(f reflect.StructField) shape {
	if s, ok := shapeNames[f.Tag.Get("shape")]; ok {
		return s
	}
	t := f.Type
	switch {
	case t == rawType:
		return shapeAny
	case t == cutsType:
		return shapeCuts
	case t == labelsType:
		return shapeLabels
	case t.Kind() == reflect.Pointer:
		t = t.Elem()
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return shapeStrings
	case t.Kind() == reflect.Slice:
		return shapeStructs
	}
	return map[reflect.Kind]shape{
		reflect.String: shapeString, reflect.Int: shapeInteger, reflect.Int64: shapeInteger, reflect.Float64: shapeNumber,
		reflect.Bool: shapeBool, reflect.Map: shapeObject, reflect.Struct: shapeStruct,
	}[t.Kind()]
}

// fits reports whether raw, a value from a jsonobj reader, has shape s. It
// looks into the value only as deep as the shape needs.
func (s shape) fits(raw []byte) bool {
	switch c := raw[0]; s {
	case shapeAny:
		return true
	case shapeSome:
		return !jsonobj.IsNull(raw)
	case shapeString:
		return c == '"'
	case shapeID:
		return c == '"' && len(raw) > 2 && len(raw) <= maxRefLen+2
	case shapeInteger:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		return err == nil && -maxInteger <= n && n <= maxInteger
	case shapeNumber:
		return c == '-' || '0' <= c && c <= '9'
	case shapeBool:
		return string(raw) == "true" || string(raw) == "false"
	case shapeObject, shapeStruct:
		return c == '{'
	case shapeText:
		return c == '"' || fitsParts(raw)
	case shapePatch:
		return fitsPatch(raw)
	case shapeArray, shapeStructs, shapeCuts:
		return c == '[' // the caller checks the elements
	case shapeStrings:
		var items []*string
		return json.Unmarshal(raw, &items) == nil && items != nil && !slices.Contains(items, nil)
	case shapeLabels:
		var labels map[string]*string
		return json.Unmarshal(raw, &labels) == nil && labels != nil && !slices.Contains(slices.Collect(maps.Values(labels)), nil)
	}
	return false
}

// A contentPart has the members of a content part that are checked. It is read
// with exact member names, because encoding/json would accept "Text" for "text".
type contentPart struct {
	Type   *string     `json:"type"`
	Text   *Piece      `json:"text"`
	Source *partSource `json:"source"`
}

type partSource struct {
	Type  *string `json:"type"`
	Value *string `json:"value"`
}

// fitsParts reports whether raw is an array of content parts. A part of an
// unknown kind needs only a type.
func fitsParts(raw []byte) bool {
	var parts []contentPart
	if decodeInto(raw, &parts) != nil || parts == nil {
		return false
	}
	for _, p := range parts {
		switch {
		case p.Type == nil:
			return false
		case *p.Type == "text" && p.Text == nil:
			return false
		case mediaParts[*p.Type] && (p.Source == nil || p.Source.Type == nil || p.Source.Value == nil):
			return false
		}
	}
	return true
}

var mediaParts = map[string]bool{"image": true, "audio": true, "video": true, "document": true}

type patchOp struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`
}

// fitsPatch reports whether raw is a well-formed JSON Patch (RFC 6902). Only a
// fold can tell whether it applies.
func fitsPatch(raw []byte) bool {
	var ops []patchOp
	if decodeInto(raw, &ops) != nil || ops == nil {
		return false
	}
	return !slices.ContainsFunc(ops, func(o patchOp) bool { return !o.fits() })
}

func (o patchOp) fits() bool {
	if !fitsPointer(o.Path) {
		return false
	}
	switch o.Op {
	case "remove":
		return true
	case "add", "replace", "test":
		return o.Value != nil
	case "move", "copy":
		return fitsPointer(o.From)
	}
	return false
}

// fitsPointer reports whether p is a JSON Pointer (RFC 6901).
func fitsPointer(p *string) bool {
	if p == nil || *p != "" && (*p)[0] != '/' {
		return false
	}
	for i := range len(*p) {
		if (*p)[i] == '~' && (i+1 == len(*p) || (*p)[i+1] != '0' && (*p)[i+1] != '1') {
			return false
		}
	}
	return true
}

// fitsCuts reports whether raw is a list of cuts of the string delta: their
// lengths add up to the length of the string, and their times never decrease.
func fitsCuts(raw, delta []byte) bool {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return false
	}
	s := jsonobj.Scanner{B: compact.Bytes(), Ok: true}
	s.Expect("[")
	left, last := jsonobj.StringSize(delta), int64(0)
	for first := true; s.Ok && !s.Accept("]"); first = false {
		if !first {
			s.Expect(",")
		}
		s.Expect("[")
		n := s.Int()
		s.Expect(",")
		ms := s.Int()
		s.Expect("]")
		if n > left || ms < last {
			return false
		}
		left, last = left-n, ms
	}
	return s.Ok && len(s.B) == 0 && left == 0
}
