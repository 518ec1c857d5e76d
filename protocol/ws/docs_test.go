package ws_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/protocol/ws"
)

// TestDocument plays the examples of the protocol's page.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol/websocket.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```ws (\\S+) (\\S+)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 5 {
		t.Fatalf("found only %d examples", len(blocks))
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "demo", "flow")
		defer w.stop(t)
		fill(t, w)
		for _, b := range blocks {
			play(t, w, b[1], b[2], strings.Split(strings.TrimSpace(b[3]), "\n"))
		}
	})
	for _, name := range []string{ws.Native, ws.Replay} {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not describe %s", name)
		}
	}
}

// fill appends what the examples expect.
func fill(t *testing.T, w *world) {
	t.Helper()
	note := tapedeck.Append{Session: "demo", Events: []tapedeck.Event{{Type: "acme.note"}}}
	flow := tapedeck.Append{Session: "flow"}
	for _, p := range []payload.Payload{
		payload.RunStarted{RunID: "r", ThreadID: "thread_element_4"},
		payload.MessageAdded{Message: payload.Message{ID: "t", Role: payload.RoleReasoning, Content: []byte(`"Analyzing CVE data…"`)}},
		payload.ToolCallStart{ToolCallID: "c1", ToolCallName: "search_cve"}, payload.ToolCallArgs{ToolCallID: "c1", Delta: `{"id":7}`},
		payload.ToolCallEnd{ToolCallID: "c1"}, payload.ToolCallResult{MessageID: "m", ToolCallID: "c1", Content: []byte(`"{\"found\":2}"`)},
		payload.TextMessageStart{MessageID: "abc-123"}, payload.TextMessageContent{MessageID: "abc-123", Delta: "Based on the data"},
		payload.TextMessageEnd{MessageID: "abc-123"}, payload.RunFinished{RunID: "r", ThreadID: "thread_element_4"},
	} {
		e := payload.NewEvent(p)
		e.Thread, e.Invocation = "thread_element_4", "r"
		flow.Events = append(flow.Events, e)
	}
	for _, a := range []tapedeck.Append{note, flow} {
		if _, err := w.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
}

// play sends and compares the lines of an example.
func play(t *testing.T, w *world, path, protocol string, lines []string) {
	t.Helper()
	p := w.dial(t, strings.TrimPrefix(path, "/api/v1"), protocol)
	defer func() { _ = p.CloseNow() }()
	var got []string
	for _, line := range lines {
		direction, text, _ := strings.Cut(line, " ")
		if direction == ">" {
			p.send(t, text)
			continue
		}
		for answer := range strings.Lines(p.received()) {
			got = append(got, strings.TrimSpace(answer))
		}
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*") + "$"
		if len(got) == 0 || !regexp.MustCompile(pattern).MatchString(got[0]) {
			t.Fatalf("%s: got %q, want %s", path, got, text)
		}
		got = got[1:]
	}
	if len(got) > 0 {
		t.Errorf("%s: the example does not have %q", path, got)
	}
}
