package indexer

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		`write_file {"path":"a.py","content":"import os\nwallaby(1)\n\"x\"\t\u81ea\u884c\u8f66 \ud83d\ude80"}`: "write_file {\"path\":\"a.py\",\"content\":\"import os\nwallaby(1)\n\"x\"\t自行车 🚀\"}",
		`{"a":"C:\\new","b":"\\\"quoted\\\""}`: `{"a":"C:\new","b":"\"quoted\""}`,
		`{"half":"\ud83d"}`:                    "{\"half\":\"\ufffd\"}",
		`{"cut":"a\u81`:                        `{"cut":"au81`,
		`{"cut":"a\`:                           `{"cut":"a\`,
		`no\n JSON`:                            `no\n JSON`,
	} {
		if got := read(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// FuzzRead: a text in JSON reads as it is.
func FuzzRead(f *testing.F) {
	f.Add("a\nb\t\"\\ 自行车 🚀 <b>")
	f.Fuzz(func(t *testing.T, text string) {
		read(text)
		if !utf8.ValidString(text) {
			return
		}
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r == '\b' || r == '\f' || r == utf8.RuneError }) {
			return // they are read as spaces, or JSON writes them in several ways
		}
		if got := read(string(b)); got != `"`+text+`"` {
			t.Fatalf("%q is read as %q", b, got)
		}
	})
}
