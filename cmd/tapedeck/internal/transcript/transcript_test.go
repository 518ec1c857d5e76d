package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// TestTranscriptIsSafe: text from an agent may come from a web page that tries to
// control the terminal of the user.
func TestTranscriptIsSafe(t *testing.T) {
	evil := "a\x1b]0;title\x07b\x1b[2Jc\rd\u202ee\u009bm\x00f"
	var out bytes.Buffer
	tr := New(terminal.Pen{W: &out, Width: 80})
	text, _ := json.Marshal(evil)
	for _, e := range []tapedeck.Event{
		{Type: tapedeck.MessageAdded, Data: []byte(`{"message":{"id":"1","role":"user","content":` + string(text) + `}}`)},
		{Type: tapedeck.TextMessageContent, Data: []byte(`{"messageId":"m","delta":` + string(text) + `}`)},
		{Type: tapedeck.ToolCallStart, Data: []byte(`{"toolCallId":"t","toolCallName":` + string(text) + `}`)},
		{Type: tapedeck.ToolCallEnd, Data: []byte(`{"toolCallId":"t"}`)},
		{Type: tapedeck.ToolCallResult, Data: []byte(`{"toolCallId":"t","content":` + string(text) + `}`)},
		{Type: tapedeck.PlanUpdated, Data: []byte(`{"entries":[{"content":` + string(text) + `,"status":"pending"}]}`)},
		{Type: tapedeck.RunError, Data: []byte(`{"message":` + string(text) + `}`)},
	} {
		if err := tr.Print(&e); err != nil {
			t.Fatal(err)
		}
	}
	if i := strings.IndexAny(out.String(), "\x1b\x07\r\x00\u202e\u009b"); i >= 0 {
		t.Errorf("a control character got through: %q", out.String()[max(0, i-20):i+10])
	}
	if !strings.Contains(out.String(), "a\uFFFD]0;title") {
		t.Errorf("the text is not shown: %q", out.String())
	}
}

// TestTranscriptOfWholeMessages has tool calls that are members of a message, and
// results that are messages.
func TestTranscriptOfWholeMessages(t *testing.T) {
	at := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	tr := New(terminal.Pen{W: &out, Width: 80})
	for i, m := range []string{
		`{"id":"u","role":"user","content":"fix it"}`,
		`{"id":"a","role":"assistant","toolCalls":[{"id":"x","type":"function","function":{"name":"Read","arguments":"{\"f\":1}"}},{"id":"y","type":"function","function":{"name":"Bash","arguments":"{}"}}]}`,
		`{"id":"t1","role":"tool","toolCallId":"x","content":"the file"}`,
		`{"id":"t2","role":"tool","toolCallId":"y","content":"","error":"no shell"}`,
		`{"id":"b","role":"assistant","content":"Done."}`,
	} {
		e := tapedeck.Event{Type: tapedeck.MessageAdded, Time: at.Add(time.Duration(i) * time.Second), Data: json.RawMessage(`{"message":` + m + `}`)}
		if err := tr.Print(&e); err != nil {
			t.Fatal(err)
		}
	}
	const want = "› fix it\n  ⚙ Read {\"f\":1}\n  ⚙ Bash {}\n  ✓ Read 1s the file\n  ✗ Bash 2s no shell\nassistant: Done.\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestTranscript(t *testing.T) {
	at := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	event := func(typ, data string) tapedeck.Event {
		at = at.Add(250 * time.Millisecond)
		return tapedeck.Event{Type: typ, Time: at, Data: json.RawMessage(data)}
	}
	var out bytes.Buffer
	tr := New(terminal.Pen{W: &out, Width: 80})
	for _, e := range []tapedeck.Event{
		event(tapedeck.MessageAdded, `{"message":{"id":"u","role":"user","content":"fix it"}}`),
		event(tapedeck.ReasoningMessageContent, `{"messageId":"r","delta":"hm"}`),
		event(tapedeck.TextMessageContent, `{"messageId":"m","delta":"I "}`),
		event(tapedeck.TextMessageContent, `{"messageId":"m","delta":"will"}`),
		event(tapedeck.ToolCallStart, `{"toolCallId":"t","toolCallName":"Read"}`),
		event(tapedeck.ToolCallArgs, `{"toolCallId":"t","delta":"{\"f\":"}`),
		event(tapedeck.ToolCallArgs, `{"toolCallId":"t","delta":"1}"}`),
		event(tapedeck.ToolCallEnd, `{"toolCallId":"t"}`),
		event(tapedeck.ToolCallResult, `{"toolCallId":"t","content":"nope","metadata":{"tapedeck":{"error":true}}}`),
		event(tapedeck.PlanUpdated, `{"entries":[{"content":"one","status":"completed"},{"content":"two","status":"in_progress"}]}`),
		event("something.else", `{"any":1}`),
		event(tapedeck.TextMessageContent, `[]`), // data that does not match the type
		event(tapedeck.RunFinished, `{"outcome":{"type":"cancelled"}}`),
	} {
		if err := tr.Print(&e); err != nil {
			t.Fatal(err)
		}
	}
	want := "› fix it\nhm\nI will\n  ⚙ Read {\"f\":1}\n  ✗ Read 1s nope\n  plan\n    ✓ one\n    → two\ncancelled\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// The plan of an agent that calls TodoWrite, rewinds, and an erased message.
func TestTranscriptOfTodosJumpsAndErasures(t *testing.T) {
	var out bytes.Buffer
	tr := New(terminal.Pen{W: &out, Width: 80})
	call := func(id, args string) []tapedeck.Event {
		delta, _ := json.Marshal(args)
		return []tapedeck.Event{
			{Type: tapedeck.ToolCallStart, Data: []byte(`{"toolCallId":"` + id + `","toolCallName":"TodoWrite"}`)},
			{Type: tapedeck.ToolCallArgs, Data: []byte(`{"toolCallId":"` + id + `","delta":` + string(delta) + `}`)},
			{Type: tapedeck.ToolCallEnd, Data: []byte(`{"toolCallId":"` + id + `"}`)},
		}
	}
	events := call("1", `{"todos":[{"content":"one","status":"completed","activeForm":"x"},{"content":"two","status":"pending"}]}`)
	events = append(events, call("2", `{"todos":"none"}`)...)
	events = append(events,
		tapedeck.Event{Offset: 9, Type: tapedeck.SessionRewound, Data: []byte(`{"toOffset":3}`)},
		tapedeck.Event{Offset: 12, Type: tapedeck.SessionCleared, Data: []byte(`{"thread":"review"}`)},
		tapedeck.Event{Type: tapedeck.MessageAdded, Data: []byte(`{"erased":true,"message":{"id":"1","role":"user","content":""}}`)},
	)
	for i := range events {
		if err := tr.Print(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	want := "  plan\n    ✓ one\n    ○ two\n  ⚙ TodoWrite\n↶ back to the state before offset 3\n" +
		"↶ thread review: back to the state before offset 0\n(erased)\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestTranscriptOfHalves has characters that come in two deltas, also of two messages at the
// same time. One character never gets its second half.
func TestTranscriptOfHalves(t *testing.T) {
	var out bytes.Buffer
	tr := New(terminal.Pen{W: &out, Width: 80})
	for _, line := range []string{
		`REASONING_MESSAGE_CONTENT {"messageId":"r","delta":"hm \ud83d"}`,
		`REASONING_MESSAGE_CONTENT {"messageId":"r","delta":"\ude80 so"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"go \ud83d"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"n","delta":"or \ud83d"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"\ude80 on"}`,
		`TEXT_MESSAGE_END {"messageId":"m"}`,
		`TEXT_MESSAGE_END {"messageId":"n"}`,
		`TOOL_CALL_START {"toolCallId":"t","toolCallName":"look"}`,
		`TOOL_CALL_ARGS {"toolCallId":"t","delta":"{\"q\":\"\ud83d"}`,
		`TOOL_CALL_ARGS {"toolCallId":"t","delta":"\ude80\"}"}`,
		`TOOL_CALL_END {"toolCallId":"t"}`,
	} {
		typ, data, _ := strings.Cut(line, " ")
		if err := tr.Print(&tapedeck.Event{Type: typ, Data: json.RawMessage(data)}); err != nil {
			t.Fatal(err)
		}
	}
	const want = "hm 🚀 so\ngo \nor \n🚀 on\n\uFFFD\n  ⚙ look {\"q\":\"🚀\"}\n"
	if out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
}
