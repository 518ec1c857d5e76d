package exchange

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// The functions here read JSON that was found valid, but may have any shape. They
// do not take "Role" for "role", as structs of encoding/json would.

// object returns the members of raw, nil if it is no object.
func object(raw []byte) tapedeck.Members {
	var m tapedeck.Members
	if kindOf(raw) == '{' {
		_ = json.Unmarshal(raw, &m) // valid, and an object
	}
	return m
}

// list returns the items of raw, and whether it is an array.
func list(raw []byte) ([]json.RawMessage, bool) {
	if kindOf(raw) != '[' {
		return nil, false
	}
	var items []json.RawMessage
	return items, json.Unmarshal(raw, &items) == nil
}

// text returns the string that raw is, and whether it is one.
func text(raw []byte) (string, bool) {
	if kindOf(raw) != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// str returns the string that raw is, "" if it is none.
func str(raw []byte) string {
	s, _ := text(raw)
	return s
}

func isTrue(raw []byte) bool { return string(raw) == "true" }

// missing reports whether raw says nothing.
func missing(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// kindOf returns the first character of a value: { [ " t f n, or that of a number.
func kindOf(raw []byte) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// compact returns raw without space between its tokens.
func compact(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// quoted returns s as JSON.
func quoted(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always can be
	return bytes.TrimSpace(b.Bytes())
}

// encode returns members as JSON.
func encode(m tapedeck.Members) json.RawMessage {
	b, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage("{}") // cannot be: its values were found valid
	}
	return b
}

// without returns the members that are not among the names, nil if there are
// none.
func without(m tapedeck.Members, names map[string]bool) tapedeck.Members {
	var rest tapedeck.Members
	for name, raw := range m {
		if names[name] || missing(raw) {
			continue
		}
		if rest == nil {
			rest = tapedeck.Members{}
		}
		rest[name] = raw
	}
	return rest
}

func names(all ...string) map[string]bool {
	m := make(map[string]bool, len(all))
	for _, n := range all {
		m[n] = true
	}
	return m
}

// short shortens what a message quotes of the input.
func short(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// titleOf makes a title of the first line of a text, which may have megabytes.
func titleOf(s string) string {
	s = strings.TrimSpace(s)
	line, _, _ := strings.Cut(s[:min(len(s), 4<<10)], "\n")
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	line = strings.Join(strings.Fields(line), " ")
	if r := []rune(line); len(r) > 80 {
		line = string(r[:79]) + "…"
	}
	return line
}
