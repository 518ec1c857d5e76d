package exchange

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// The functions here read valid JSON of any shape. Names of members are exact:
// unlike structs of encoding/json, they do not read "Role" as "role".

// object returns the members of raw, nil if it is not an object.
func object(raw []byte) tapedeck.Members {
	var m tapedeck.Members
	if kindOf(raw) == '{' {
		_ = json.Unmarshal(raw, &m) // it cannot fail: raw is a valid object
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

// text returns the string in raw, and whether raw is one.
func text(raw []byte) (string, bool) {
	if kindOf(raw) != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// str returns the string in raw, "" if raw is not one.
func str(raw []byte) string {
	s, _ := text(raw)
	return s
}

func isTrue(raw []byte) bool { return string(raw) == "true" }

// missing reports whether raw has no value.
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
func quoted(s string) json.RawMessage { return quotedPiece(jsonobj.Piece(jsonobj.Whole(s))) }

// quotedPiece returns a piece of a text as JSON.
func quotedPiece(s jsonobj.Piece) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return bytes.TrimSpace(b.Bytes())
}

// encode returns members as JSON.
func encode(m tapedeck.Members) json.RawMessage {
	b, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage("{}") // impossible: its values are valid
	}
	return b
}

// without returns the members except the named ones, nil if there are none.
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

func setOf(all ...string) map[string]bool {
	m := make(map[string]bool, len(all))
	for _, n := range all {
		m[n] = true
	}
	return m
}

// short shortens a quotation of the input for a message.
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

// titleOf returns the first line of a text as a title. The text can have
// megabytes.
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
