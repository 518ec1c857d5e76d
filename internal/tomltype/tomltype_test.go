package tomltype

import (
	"strings"
	"testing"
	"time"
)

type entry struct {
	Name  string             `toml:"name"`
	On    *bool              `toml:"on"`
	Many  []string           `toml:"many"`
	Count int64              `toml:"count"`
	Share float64            `toml:"share"`
	After time.Duration      `toml:"after"`
	Until time.Time          `toml:"until"`
	Words map[string]string  `toml:"words,omitempty"`
	Any   map[string]any     `toml:"any"`
	Each  map[string]*inside `toml:"each"`
	Plain inside
}

type inside struct{ Size int }

// TestFind: a value that does not have its type is found by its setting, whichever type that is,
// and is not shown.
func TestFind(t *testing.T) {
	for text, want := range map[string]string{
		`on = 1`:                          "entry.on takes true or false, not a number",
		`on = "s3cr3t"`:                   "entry.on takes true or false, not a text",
		`many = "s3cr3t"`:                 `entry.many takes a list of texts such as ["a", "b"], not a text`,
		`many = ["a", 1]`:                 "entry.many takes a text in quotes, not a number",
		`count = 1.5`:                     "entry.count takes a whole number, not a number with a fraction",
		`share = true`:                    "entry.share takes a number, not true",
		`after = 5`:                       `entry.after takes a duration such as "90s" or "10m", not a number`,
		`after = "s3cr3t"`:                `entry.after takes a duration such as "90s" or "10m", not this text`,
		`until = "s3cr3t"`:                "entry.until takes a time such as 2030-01-31T12:00:00Z, not a text",
		`words = ["s3cr3t"]`:              `entry.words takes a table such as { name = "value" }, not a list`,
		`words = { a = 1 }`:               "entry.words.a takes a text in quotes, not a number",
		`any = "s3cr3t"`:                  "entry.any takes a table, not a text",
		`each = { a = { size = false } }`: "",
		`each = { a = { Size = false } }`: "entry.each.a.Size takes a whole number, not false",
		`each = { a = [[1]] }`:            "entry.each.a takes a table, not a list",
		`Plain = 2026-01-01T00:00:00Z`:    "entry.Plain takes a table, not a time",

		`any = { a = 1, b = [true], c = { d = "e" } }`: "",
		`share = 1`:                    "",
		`after = "1m30s"`:              "",
		`until = 2026-01-01T00:00:00Z`: "",
		`on = `:                        "", // no TOML, which the parser says
	} {
		var file struct {
			Entries []entry `toml:"entry"`
		}
		got := ""
		m := Find([]byte("[[entry]]\nname = \"first\"\n[[entry]]\nname = \"second\"\n"+text+"\n"), &file)
		if m != nil {
			got = m.Setting + " " + m.String()
			if m.Index != 1 || m.Entry["name"] != "second" {
				t.Errorf("%s: it is in entry %d, %v", text, m.Index, m.Entry["name"])
			}
		}
		if got != want || strings.Contains(got, "s3cr3t") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
