package agentconfig

import (
	"bytes"
	"cmp"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/tapedeck/tapedeck"
)

var durationType = reflect.TypeFor[time.Duration]()

// checkTypes refuses a value of the wrong type, without the value. The parser would name neither
// the agent nor the type that is right, ignore a table that is none, and take the number 5 for a
// duration of 5 ns.
func checkTypes(path string, text []byte, file any) error {
	var found map[string]any
	if _, err := toml.Decode(string(text), &found); err != nil {
		return nil // the caller reports it
	}
	m := findMismatch("", found, reflect.TypeOf(file).Elem())
	if m == nil {
		return nil
	}
	of, begin := "", 0
	if m.isAgent {
		begin = lineOfAgent(text, m.index) - 1
	}
	if m.agent != "" {
		of = " of the agent " + m.agent
	}
	rest := bytes.Join(bytes.SplitAfter(text, []byte("\n"))[begin:], nil)
	line := begin + max(1, lineOf(rest, strings.Split(m.setting, ".")))
	e := tapedeck.Errorf(tapedeck.Invalid, "%s:%d: %s%s takes %s, not %s", path, line, m.setting, of, describe(m.setting, m.want), kindOf(m.found, m.want))
	if m.setting == "agent.command" {
		return e.WithHint(`command is the program alone, and args has its arguments: command = "my-agent", args = ["--acp"]`)
	}
	return e.WithHint("docs/agents/README.md lists all settings")
}

// A mismatch is a value of a type that its setting does not take.
type mismatch struct {
	setting string // such as agent.command
	isAgent bool   // an agent has it
	index   int    // of the agent
	agent   string // its name; "" if it has none that is valid
	want    reflect.Type
	found   any
}

// findMismatch returns the first value that does not have its type, nil if all have.
func findMismatch(setting string, v any, want reflect.Type) *mismatch {
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
					if setting == "agent" {
						m.isAgent, m.index = true, i
					}
					return m
				}
			}
			return nil
		}
	}
	return &mismatch{setting: setting, want: want, found: v}
}

// inTable looks at the settings in a table.
func inTable(setting string, table map[string]any, want reflect.Type) (found *mismatch) {
	within := func(name string, want reflect.Type) {
		if v, ok := table[name]; ok && found == nil {
			found = findMismatch(strings.TrimPrefix(setting+"."+name, "."), v, want)
		}
	}
	if want.Kind() == reflect.Map {
		for name := range table {
			within(name, want.Elem())
		}
	} else {
		for _, f := range reflect.VisibleFields(want) {
			within(cmp.Or(f.Tag.Get("toml"), f.Name), f.Type)
		}
	}
	if name, _ := table["name"].(string); found != nil && setting == "agent" && tapedeck.CheckID("the name", name) == nil {
		found.agent = name
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
