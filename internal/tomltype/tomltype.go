// Package tomltype finds the values of a TOML file that do not have the type of their setting. The
// parser names a place and "incompatible types"; a list where a table belongs it ignores, and the
// number 5 it takes for a duration of 5 ns.
package tomltype

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

var durationType = reflect.TypeFor[time.Duration]()

// A Mismatch is a value of a type that its setting does not take.
type Mismatch struct {
	Setting string         // such as agent.command
	Entry   map[string]any // the table that has it in a list at the top of the file; nil if none has
	Index   int            // of that table
	want    reflect.Type
	found   any
}

// String says what the setting takes, and what kind of value it has, but not the value, which may
// be a secret.
func (m *Mismatch) String() string {
	return "takes " + describe(m.Setting, m.want) + ", not " + kindOf(m.found, m.want)
}

// Find returns the first value of a text that does not have the type of its setting in file, a
// pointer to a struct. It returns nil if there is none, or if the text is no TOML.
func Find(text []byte, file any) *Mismatch {
	var found map[string]any
	if _, err := toml.Decode(string(text), &found); err != nil {
		return nil
	}
	return findMismatch("", found, reflect.TypeOf(file).Elem())
}

// findMismatch returns the first value that does not have its type, nil if all have.
func findMismatch(setting string, v any, want reflect.Type) *Mismatch {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if fits(v, want) {
		return nil
	}
	switch want.Kind() {
	case reflect.Struct, reflect.Map:
		if table, ok := v.(map[string]any); ok {
			return inTable(setting, table, want)
		}
	case reflect.Slice:
		if list, ok := elements(v); ok {
			for i, item := range list {
				if m := findMismatch(setting, item, want.Elem()); m != nil {
					if entry, ok := item.(map[string]any); ok && !strings.Contains(setting, ".") {
						m.Entry, m.Index = entry, i
					}
					return m
				}
			}
			return nil
		}
	}
	return &Mismatch{Setting: setting, want: want, found: v}
}

// inTable looks at the settings in a table.
func inTable(setting string, table map[string]any, want reflect.Type) (found *Mismatch) {
	within := func(name string, want reflect.Type) {
		if v, ok := table[name]; ok && found == nil {
			found = findMismatch(strings.TrimPrefix(setting+"."+name, "."), v, want)
		}
	}
	if want.Kind() == reflect.Map {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			within(name, want.Elem())
		}
	} else {
		for _, f := range reflect.VisibleFields(want) {
			name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
			within(cmp.Or(name, f.Name), f.Type)
		}
	}
	return found
}

// fits reports whether a value that has no settings in it has a type.
func fits(v any, want reflect.Type) bool {
	if want == durationType {
		s, ok := v.(string)
		_, err := time.ParseDuration(s)
		return ok && err == nil
	}
	if want == reflect.TypeFor[time.Time]() {
		_, ok := v.(time.Time)
		return ok
	}
	switch want.Kind() {
	case reflect.Interface:
		return true
	case reflect.String:
		_, ok := v.(string)
		return ok
	case reflect.Bool:
		_, ok := v.(bool)
		return ok
	case reflect.Int, reflect.Int64:
		_, ok := v.(int64)
		return ok
	case reflect.Float64:
		switch v.(type) {
		case int64, float64:
			return true
		}
	}
	return false
}

// elements returns the elements of a list, also of one of tables.
func elements(v any) ([]any, bool) {
	switch list := v.(type) {
	case []any:
		return list, true
	case []map[string]any:
		out := make([]any, len(list))
		for i := range list {
			out[i] = list[i]
		}
		return out, true
	}
	return nil, false
}

// describe describes the values that a type takes.
func describe(setting string, want reflect.Type) string {
	if want == durationType {
		return `a duration such as "90s" or "10m"`
	}
	if want == reflect.TypeFor[time.Time]() {
		return "a time such as 2030-01-31T12:00:00Z"
	}
	switch want.Kind() {
	case reflect.String:
		return `a text in quotes`
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if want.Elem().Kind() == reflect.String {
			return `a list of texts such as ["a", "b"]`
		}
		return "tables such as [[" + setting + "]]"
	case reflect.Map:
		if want.Elem().Kind() == reflect.String {
			return `a table such as { name = "value" }`
		}
	}
	return "a table"
}

// kindOf describes a value without showing it, because it may be a secret.
func kindOf(v any, want reflect.Type) string {
	switch v := v.(type) {
	case string:
		if want == durationType {
			return "this text"
		}
		return "a text"
	case bool:
		return strconv.FormatBool(v)
	case float64:
		if want.Kind() == reflect.Int || want.Kind() == reflect.Int64 {
			return "a number with a fraction"
		}
		return "a number"
	case int64:
		return "a number"
	case map[string]any:
		return "a table"
	}
	if _, ok := elements(v); ok {
		return "a list"
	}
	return "a time"
}
