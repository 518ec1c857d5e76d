package jsonobj

import (
	"encoding/json"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Unpack decodes JSON into a struct or a slice of structs. into points to it. It
// differs from encoding/json in four rules, so that folds in all
// languages can agree. The names of members are exact. If a member is repeated,
// the last value counts as a whole. An integer may be written as 1.0 or 1e3. A
// member that does not have the shape of its field counts as absent, while all
// others are set. Unpack reports false if there is such a member, or if data is
// not JSON.
func Unpack(data []byte, into any) bool {
	return json.Valid(data) && setExact(data, reflect.ValueOf(into).Elem())
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

var unmarshalerType = reflect.TypeFor[json.Unmarshaler]()

// setExact sets v, which must be zero, from valid JSON.
func setExact(raw []byte, v reflect.Value) bool {
	t := v.Type()
	raw = SkipSpace(raw)
	switch {
	case t == rawMessage:
		v.SetBytes(append(json.RawMessage{}, raw...))
		return true
	case IsNull(raw):
		return true
	case t.Kind() == reflect.String && isPlain(raw):
		v.SetString(string(raw[1 : len(raw)-1]))
		return true
	case reflect.PointerTo(t).Implements(unmarshalerType):
		return setLeaf(raw, v)
	}
	switch t.Kind() {
	case reflect.Struct:
		return setStruct(raw, v)
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		fits := setExact(raw, p.Elem())
		if fits || t.Elem().Kind() == reflect.Struct {
			v.Set(p)
		}
		return fits
	case reflect.Slice:
		return setSlice(raw, v)
	}
	return setLeaf(raw, v)
}

// isPlain reports whether raw is a string without escapes.
func isPlain(raw []byte) bool {
	return IsString(raw) && plain(raw[1:len(raw)-1])
}

func setLeaf(raw []byte, v reflect.Value) bool {
	if json.Unmarshal(raw, v.Addr().Interface()) != nil && !setWhole(raw, v) {
		v.SetZero()
		return false
	}
	return true
}

// setWhole sets an integer from a number such as 1.0 or 1e3, which encoding/json
// refuses. Other languages cannot tell it from the integer.
func setWhole(raw []byte, v reflect.Value) bool {
	const largest = 1<<53 - 1 // that a float64 keeps exact
	f, err := strconv.ParseFloat(string(raw), 64)
	if !v.CanInt() || err != nil || f != math.Trunc(f) || math.Abs(f) > largest {
		return false
	}
	v.SetInt(int64(f))
	return true
}

func setStruct(raw []byte, v reflect.Value) bool {
	fields := fieldsOf(v.Type())
	o := Read(raw)
	var unfit []string // names of members
	for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
		index, known := fields[string(name)]
		if !known {
			continue
		}
		field := v.FieldByIndex(index)
		field.SetZero()
		unfit = slices.DeleteFunc(unfit, func(n string) bool { return n == string(name) })
		if !setExact(value, field) {
			unfit = append(unfit, string(name))
		}
	}
	return len(unfit) == 0 && !o.Bad
}

func setSlice(raw []byte, v reflect.Value) bool {
	if raw[0] != '[' {
		return false
	}
	n := 0
	for range elements(raw) {
		n++
	}
	fits, i := true, 0
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for item := range elements(raw) {
		fits = setExact(item, v.Index(i)) && fits
		i++
	}
	return fits
}

// elements yields the elements of a valid array.
func elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for rest := SkipSpace(raw[1:]); rest[0] != ']'; {
			n := ValueLen(rest)
			if !yield(rest[:n:n]) {
				return
			}
			if rest = SkipSpace(rest[n:]); rest[0] == ',' {
				rest = SkipSpace(rest[1:])
			}
		}
	}
}

var exactFields sync.Map // reflect.Type to map[string][]int

// fieldsOf returns the fields of a struct by the names of their members.
func fieldsOf(t reflect.Type) map[string][]int {
	if known, ok := exactFields.Load(t); ok {
		return known.(map[string][]int)
	}
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "" && name != "-" {
			fields[name] = f.Index
		}
	}
	exactFields.Store(t, fields)
	return fields
}
