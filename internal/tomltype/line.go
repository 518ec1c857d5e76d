package tomltype

import (
	"bytes"
	"strings"

	"github.com/BurntSushi/toml"
)

// LineOf returns the line of a setting, which the parser does not report: also that of a table
// on one line that has the setting in it. It is at least 1.
func LineOf(text []byte, key toml.Key) int {
	for n := len(key); n > 1; n-- {
		if line := lineOfKey(text, key[:n]); line > 0 {
			return line
		}
	}
	n := 0
	for l := range bytes.Lines(text) {
		if n++; bytes.Contains(l, []byte(key[len(key)-1])) {
			return n
		}
	}
	return 1
}

// lineOfKey returns the line that begins with a setting, or with the table of this name; 0 if
// there is none.
func lineOfKey(text []byte, key toml.Key) int {
	table, n := "", 0
	for l := range bytes.Lines(text) {
		n++
		line := strings.TrimSpace(string(l))
		if header, ok := strings.CutPrefix(line, "["); ok {
			header, _, _ = strings.Cut(strings.TrimPrefix(header, "["), "]")
			table = strings.TrimSpace(header) + "."
			if table == key.String()+"." {
				return n
			}
			continue
		}
		given, _, ok := strings.Cut(line, "=")
		if ok && table+strings.TrimSpace(given) == key.String() {
			return n
		}
	}
	return 0
}

// LineOfEntry returns the line where the entry with index i of a list of tables begins, 1 if it
// is not found.
func LineOfEntry(text []byte, list string, i int) int {
	n, found := 0, -1
	for l := range bytes.Lines(text) {
		n++
		if line := strings.ReplaceAll(string(l), " ", ""); strings.HasPrefix(line, "[["+list+"]]") {
			if found++; found == i {
				return n
			}
		}
	}
	return 1
}

// Line returns the line of the value in the text in which it was found.
func (m *Mismatch) Line(text []byte) int {
	key, begin := strings.Split(m.Setting, "."), 0
	if m.Entry != nil {
		begin = LineOfEntry(text, key[0], m.Index) - 1
	}
	rest := bytes.Join(bytes.SplitAfter(text, []byte("\n"))[begin:], nil)
	return begin + LineOf(rest, key)
}
