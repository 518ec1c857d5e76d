package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// TestEventLineIsSafe: text from an agent may come from a web page that tries to
// control the terminal of the user.
func TestEventLineIsSafe(t *testing.T) {
	const evil = `"a\u001b]0;title\u0007b\u001b[2Jc\rd\u202ee\u009bm\u0000f"`
	for _, e := range []tapedeck.Event{
		{Type: tapedeck.MessageAdded, Data: []byte(`{"message":{"id":"1","role":"user","content":` + evil + `}}`)},
		{Type: tapedeck.TextMessageContent, Data: []byte(`{"messageId":"m","delta":` + evil + `}`)},
		{Type: tapedeck.ToolCallStart, Data: []byte(`{"toolCallId":"t","toolCallName":` + evil + `}`)},
		{Type: tapedeck.RunError, Data: []byte(`{"message":` + evil + `}`)},
		{Type: "something.else", Data: []byte(`{"any":` + evil + `}`)},
	} {
		line := eventLine(terminal.Pen{Width: 100}, &e)
		if i := strings.IndexAny(line, "\x1b\x07\r\x00\u202e\u009b"); i >= 0 {
			t.Errorf("%s: a control character got through: %q", e.Type, line)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{"1": 1, "64MiB": 64 << 20, "10 KB": 10_000, "2GiB": 2 << 30, "5B": 5} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("%q: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "-1MiB", "9999999GiB", "1.5MiB", "MiB", "1TiB"} {
		if got, err := parseSize(in); err == nil {
			t.Errorf("%q is %d", in, got)
		}
	}
}

// Printed JSON has the same value and cannot control a terminal.
func TestJSONHidesNothing(t *testing.T) {
	const evil = "a\u009b2Jb\u202ec\u007fd\u200be\U000E0041f é 日本 <&> \u2028"
	var out bytes.Buffer
	e := &env{stdout: &out}
	raw := json.RawMessage(`"` + evil + `"`)
	for name, print := range map[string]func() error{
		"text":   func() error { return e.printJSON(map[string]string{"name": evil}) },
		"raw":    func() error { return e.printJSON(map[string]any{"name": raw}) },
		"record": func() error { return e.printRecord([]byte(`{"name":"` + evil + `"}`)) },
	} {
		out.Reset()
		if err := print(); err != nil {
			t.Fatal(err)
		}
		line, ok := strings.CutSuffix(out.String(), "\n")
		if !ok || terminal.Visible(line) != line {
			t.Errorf("%s: %q", name, line)
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(line), &got); err != nil || got["name"] != evil {
			t.Errorf("%s: %q is read back as %q, %v", name, line, got["name"], err)
		}
		if !strings.Contains(line, "é 日本 <&>") {
			t.Errorf("%s: %q escapes more than it must", name, line)
		}
	}
}
