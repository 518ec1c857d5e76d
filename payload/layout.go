package payload

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A layout describes the members of a JSON object by the fields of a struct.
// The tag json is as in encoding/json; a member without omitempty is required.
// The tag shape says what a raw member must be. A layout is computed once for
// each type.
type layout struct {
	fields []field
	extra  []int // index of the field Extra; nil if there is none
}

type field struct {
	name     string
	index    []int
	required bool
	shape    shape
	nested   *layout // for shapeStruct and shapeStructs
}

var layouts sync.Map // maps reflect.Type to *layout

var (
	rawType     = reflect.TypeFor[json.RawMessage]()
	membersType = reflect.TypeFor[tapedeck.Members]()
	labelsType  = reflect.TypeFor[map[string]string]()
	cutsType    = reflect.TypeFor[[]Cut]()
	pieceType   = reflect.TypeFor[Piece]()
)

func layoutOf(t reflect.Type) *layout {
	if l, ok := layouts.Load(t); ok {
		return l.(*layout)
	}
	l := &layout{}
	for _, f := range reflect.VisibleFields(t) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == membersType && f.Name == "Extra":
			l.extra = f.Index
		case name != "" && name != "-":
			l.fields = append(l.fields, newField(f, name, option == ""))
		}
	}
	layouts.Store(t, l)
	return l
}

func newField(f reflect.StructField, name string, required bool) field {
	out := field{name: name, index: f.Index, required: required, shape: shapeOf(f)}
	t := f.Type
	if k := t.Kind(); k == reflect.Pointer || k == reflect.Slice {
		t = t.Elem()
	}
	if out.shape == shapeStruct || out.shape == shapeStructs {
		out.nested = layoutOf(t)
	}
	return out
}

func (l *layout) field(name []byte) (int, *field) {
	for i := range l.fields {
		if l.fields[i].name == string(name) {
			return i, &l.fields[i]
		}
	}
	return -1, nil
}

// encode appends v, a struct of layout l, as a JSON object: its fields, then
// Extra sorted by name. If a field is zero and Extra has a member of its name,
// that member is encoded instead. So a member whose value equals its absence
// comes back unchanged.
func (l *layout) encode(b []byte, v reflect.Value) []byte {
	var extra tapedeck.Members
	if l.extra != nil {
		extra, _ = v.FieldByIndex(l.extra).Interface().(tapedeck.Members)
	}
	b = append(b, '{')
	start := len(b)
	for i := range l.fields {
		f := &l.fields[i]
		fv := v.FieldByIndex(f.index)
		if fv.IsZero() {
			if _, given := extra[f.name]; given || !f.required {
				continue
			}
		}
		b = appendValue(jsonobj.AppendName(b, start, f.name), fv)
	}
	for _, name := range jsonobj.Names(extra) {
		if _, f := l.field([]byte(name)); f != nil && !v.FieldByIndex(f.index).IsZero() {
			continue
		}
		b = jsonobj.AppendRaw(jsonobj.AppendName(b, start, name), extra[name])
	}
	return append(b, '}')
}

func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Type() {
	case rawType:
		return jsonobj.AppendRaw(b, v.Bytes())
	case membersType:
		return jsonobj.AppendMembers(b, v.Interface().(tapedeck.Members))
	case labelsType:
		return appendLabels(b, v.Interface().(map[string]string))
	case pieceType:
		return jsonobj.AppendPiece(b, Piece(v.String()))
	}
	switch v.Kind() {
	case reflect.String:
		return jsonobj.AppendJSON(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Float64:
		return appendFloat(b, v.Float())
	case reflect.Pointer:
		return appendValue(b, v.Elem())
	case reflect.Struct:
		return layoutOf(v.Type()).encode(b, v)
	}
	return appendList(b, v)
}

func appendList(b []byte, v reflect.Value) []byte {
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, v.Index(i))
	}
	return append(b, ']')
}

func appendLabels(b []byte, labels map[string]string) []byte {
	raw := tapedeck.Members{}
	for name, value := range labels {
		raw[name] = jsonobj.AppendJSON(nil, value)
	}
	return jsonobj.AppendMembers(b, raw)
}

func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...) // JSON has no such number
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

// decode sets v, a struct of layout l, from a JSON object. It keeps unknown
// members, and those that leave their field zero, in Extra.
func (l *layout) decode(data []byte, v reflect.Value) error {
	o := jsonobj.Read(data)
	var extra tapedeck.Members
	keep := func(name string, raw []byte) {
		if extra == nil {
			extra = tapedeck.Members{}
		}
		extra[name] = slices.Clone(raw)
	}
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		_, f := l.field(name)
		if f == nil {
			keep(string(name), raw)
			continue
		}
		fv := v.FieldByIndex(f.index)
		fv.SetZero() // if a name is repeated, the last value counts
		delete(extra, f.name)
		if err := decodeValue(raw, fv); err != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "its member %s is not %s", f.name, f.shape).Because(err)
		}
		if fv.IsZero() {
			keep(f.name, raw)
		}
	}
	if o.Bad {
		return tapedeck.Errorf(tapedeck.Invalid, "it is not a JSON object")
	}
	if len(extra) > 0 && l.extra != nil {
		v.FieldByIndex(l.extra).Set(reflect.ValueOf(extra))
	}
	return nil
}

func decodeValue(raw []byte, v reflect.Value) error {
	t := v.Type()
	switch {
	case jsonobj.IsNull(raw) && t != rawType:
		return nil
	case t == pieceType:
		return v.Addr().Interface().(*Piece).UnmarshalJSON(raw) // encoding/json would read it twice
	case t.Kind() == reflect.Struct:
		return layoutOf(t).decode(raw, v)
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(t.Elem()))
		return decodeValue(raw, v.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return decodeStructs(raw, v)
	}
	return json.Unmarshal(raw, v.Addr().Interface())
}

func decodeStructs(raw []byte, v reflect.Value) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		if err := decodeValue(item, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// decodeInto sets the struct or slice of structs to which p points.
func decodeInto[T any](raw []byte, p *T) error { return decodeValue(raw, reflect.ValueOf(p).Elem()) }
