package channels_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/protocol/rest/channels"
	"github.com/tapedeck/tapedeck/view"
)

// A tape is a log that normalizes what is appended, as the engine does.
type tape struct {
	order  order.Verifier
	events []tapedeck.Event
}

func (l *tape) append(t *testing.T, events ...tapedeck.Event) {
	t.Helper()
	accepted, err := l.order.Accept(events)
	if err != nil {
		t.Fatalf("the log refuses %s: %v", events[0].Type, err)
	}
	for _, e := range accepted {
		e.Offset = int64(len(l.events))
		if e.Time.IsZero() {
			e.Time = time.UnixMilli(1_705_847_000_000 + e.Offset)
		}
		if channel := tapedeck.ChannelOf(e.Type); channel != "" {
			e.Channel = channel
		}
		l.events = append(l.events, e)
	}
}

// rows reads the log from an offset on. The first row gets number.
func (l *tape) rows(t *testing.T, from int, number int64) (rows []channels.Row) {
	t.Helper()
	r := channels.Reader{Session: "s", Before: func() (view.Snapshot, error) {
		var c view.Conversation
		for i := range l.events[:from] {
			c.Apply(&l.events[i])
		}
		return c.Snapshot(), nil
	}}
	for i := from; i < len(l.events); i++ {
		e := &l.events[i]
		if view.InChannels(e) {
			row, err := r.Row(e, number)
			if err != nil {
				t.Fatal(err)
			}
			b := row.AppendJSON(nil)
			if !json.Valid(b) {
				t.Fatalf("%s is not JSON", b)
			}
			checkPiece(t, &r, e, number, b)
			rows = append(rows, row)
			number++
		}
		if err := r.Note(e); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// checkPiece: what [channels.Reader.AppendChunk] makes of an event, if it makes anything of it,
// says the same as its row.
func checkPiece(t *testing.T, r *channels.Reader, e *tapedeck.Event, number int64, row []byte) bool {
	t.Helper()
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	b, ok := r.AppendChunk([]byte("x"), tapedeck.Record{Offset: e.Offset, Data: line}, number)
	if !ok {
		if string(b) != "x" {
			t.Errorf("%s is not understood, but %s was written", line, b)
		}
		return false
	}
	var got, want map[string]any
	if err := json.Unmarshal(b[1:], &got); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	_ = json.Unmarshal(row, &want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is read in two ways: %s", line, diff)
	}
	return true
}

// TestPieces: the usual forms of text are read without decoding their events.
func TestPieces(t *testing.T) {
	row := func(r *channels.Reader, e *tapedeck.Event) []byte {
		row, err := r.Row(e, 5)
		if err != nil {
			t.Fatal(err)
		}
		return row.AppendJSON(nil)
	}
	for _, line := range []string{
		`{"channel":"chunks","id":"c","agentId":"a","sessionId":"s","text":"hi \u00e9 \n","turn":3,"timestamp":1705848000000}`,
		`{"channel":"chunks","type":"chunk","id":"c","agentId":"a","text":"hi","timestamp":1705848000}`,
		`{"id":"s:7","session_id":"s","offset":7,"type":"text","channel":"chunks","data":{"agentId":"a","sessionId":"s","text":"hi","turn":0},"timestamp":7,"created_at":8}`,
		`{"id":"out","channel":"chunks","data":{"text":"hi","id":"in","agentId":"a","timestamp":1705848000000},"timestamp":7}`,
	} {
		var l tape
		events, err := newTranslator().Translate([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		l.append(t, events...)
		e := &l.events[len(l.events)-1]
		if r := (&channels.Reader{Session: "s"}); !checkPiece(t, r, e, 5, row(r, e)) {
			t.Errorf("%s is not understood", line)
		}
	}
	r := &channels.Reader{Session: "s"}
	own := 0
	l := conversation(t)
	for i := range l.events {
		e := &l.events[i]
		if e.Turn = i; e.Type == tapedeck.TextMessageContent && checkPiece(t, r, e, 5, row(r, e)) {
			own++
		}
		if err := r.Note(e); err != nil {
			t.Fatal(err)
		}
	}
	if own != 3 {
		t.Errorf("%d of 3 pieces of the log are understood", own)
	}
}

// FuzzPiece compares both ways to read a piece of text.
func FuzzPiece(f *testing.F) {
	f.Add(`{"channel":"chunks","id":"c","agentId":"a","text":"hi","turn":3}`, `"r.3"`, `"hi"`, "a", "agent:a", true)
	f.Add(`{"id":"o","channel":"chunks","type":"x","data":{"agentId":"a","text":"hi"},"timestamp":1}`, `"r.0"`, `"hi"`, "a", "", true)
	f.Add(`{"channel":"chunks","data":{"agentId":"a","text":"hi"}}`, `"r."`, `"hi"`, "a", "", true)
	f.Add(`{}`, `"m"`, `"\ud83d"`, "", "user:b", false)
	f.Fuzz(func(t *testing.T, origin, message, delta, thread, actor string, published bool) {
		data := `{"messageId":` + message + `,"delta":` + delta
		if published {
			data += `,"rawEvent":` + origin
		}
		e := tapedeck.Event{Type: tapedeck.TextMessageContent, Channel: tapedeck.ChannelChunks, Thread: thread, Invocation: "r", Actor: actor, Data: json.RawMessage(data + "}")}
		if !json.Valid(e.Data) || e.Check() != nil {
			return
		}
		r := channels.Reader{Session: "s"}
		if view.InChannels(&e) {
			row, err := r.Row(&e, 5)
			if err != nil {
				t.Fatal(err)
			}
			checkPiece(t, &r, &e, 5, row.AppendJSON(nil))
		}
	})
}

// checkFromAnywhere: a reader that begins in the middle sees what the others see.
func (l *tape) checkFromAnywhere(t *testing.T) {
	t.Helper()
	all := l.rows(t, 0, 0)
	number := int64(0)
	for from := range l.events {
		if diff := cmp.Diff(all[number:], l.rows(t, from, number)); number < int64(len(all)) && diff != "" {
			t.Fatalf("from offset %d on: %s", from, diff)
		}
		if view.InChannels(&l.events[from]) {
			number++
		}
	}
}

// TestRowsArePublishedEvents gives the lines of the fixtures back, one row for each line
// that the log has accepted.
func TestRowsArePublishedEvents(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var l tape
			tr := newTranslator()
			var want []string
			for line := range strings.Lines(string(a.Files[0].Data)) {
				events, err := tr.Translate([]byte(line))
				if err != nil {
					continue
				}
				l.append(t, events...)
				want = append(want, line)
			}
			rows := l.rows(t, 0, 0)
			if len(rows) != len(want) {
				t.Fatalf("%d events were published, and %d are read", len(want), len(rows))
			}
			for i, row := range rows {
				var published, data map[string]any
				_ = json.Unmarshal([]byte(want[i]), &published)
				_ = json.Unmarshal(row.Data, &data)
				if inner, ok := published["data"].(map[string]any); ok {
					if row.Type != published["type"] {
						t.Errorf("%s is read with the type %s", want[i], row.Type)
					}
					if inner["id"] == nil {
						inner["id"] = published["id"]
					}
					published = inner
				}
				delete(published, "channel")
				if diff := cmp.Diff(published, data); diff != "" || row.Offset != int64(i) {
					t.Errorf("%d %s", row.Offset, diff)
				}
			}
			l.checkFromAnywhere(t)
		})
	}
}

func newTranslator() *channels.Translator {
	runs := 0
	return &channels.Translator{Session: "s", NewID: func(prefix string) string { runs++; return fmt.Sprintf("%s%d", prefix, runs) },
		Called: func(_, id string) (channels.Known, error) {
			if id == "over" {
				return channels.Answered, nil
			}
			return channels.Unknown, nil
		}}
}

// event returns an event of the log.
func event(thread, run, actor string, p payload.Payload) tapedeck.Event {
	e := payload.NewEvent(p)
	e.Thread, e.Invocation, e.Actor = thread, run, actor
	return e
}

// conversation returns what an agent of the server and a user have written.
func conversation(t *testing.T) *tape {
	l := new(tape)
	meta := tapedeck.Meta{Agent: "coder"}.In(nil)
	l.append(t, event("", "r1", "user:ada", payload.MessageAdded{Message: payload.NewMessage("m1", payload.RoleUser, "Fix it")}))
	l.append(t, event("", "r1", "tapedeck", payload.RunStarted{ThreadID: "main", RunID: "r1", Common: payload.Common{Metadata: meta}}))
	l.append(t, event("", "r1", "", payload.TextMessageStart{MessageID: "m2", Role: payload.RoleAssistant}),
		event("", "r1", "", payload.TextMessageContent{MessageID: "m2", Delta: "I look. "}),
		event("", "r1", "", payload.TextMessageContent{MessageID: "m2", Delta: "Now."}),
		event("", "r1", "", payload.TextMessageEnd{MessageID: "m2"}))
	l.append(t, event("", "r1", "", payload.ToolCallStart{ToolCallID: "c1", ToolCallName: "Read"}),
		event("", "r1", "", payload.ToolCallArgs{ToolCallID: "c1", Delta: `{"path":`}), event("", "r1", "", payload.ToolCallArgs{ToolCallID: "c1", Delta: `"a"}`}),
		event("", "r1", "", payload.ToolCallEnd{ToolCallID: "c1"}),
		event("", "r1", "", payload.ToolCallResult{MessageID: "x1", ToolCallID: "c1", Role: payload.RoleTool, Content: payload.Text("text")}))
	l.append(t, event("", "r1", "", payload.TextMessageStart{MessageID: "m3", Role: payload.RoleUser}),
		event("", "r1", "user:ada", payload.TextMessageContent{MessageID: "m3", Delta: "Faster"}),
		event("", "r1", "user:ada", payload.TextMessageEnd{MessageID: "m3"}))
	l.append(t, event("", "r1", "tapedeck", payload.RunFinished{ThreadID: "main", RunID: "r1"}))
	l.append(t, tapedeck.Event{Type: tapedeck.PresenceJoined, Actor: "user:bob", Data: json.RawMessage(`{"user":"bob","joinedAt":"2024-01-21T14:23:20.000Z"}`)},
		tapedeck.Event{Type: tapedeck.TerminalOutput, Data: json.RawMessage(`{"terminal":"main","data":"ok"}`)},
		tapedeck.Event{Type: tapedeck.WorkflowEntered, Data: json.RawMessage(`{"element":"task1"}`)})
	return l
}

func TestRowsOfOtherEvents(t *testing.T) {
	l := conversation(t)
	var got strings.Builder
	for _, row := range l.rows(t, 0, 0) {
		fmt.Fprintln(&got, row.Channel, row.Type, string(row.Data))
	}
	const want = `chunks chunk {"id":"m1","agentId":"user:ada","userId":"ada","sessionId":"s","text":"Fix it","role":"user","turn":0,"timestamp":1705847000000}
agentState started {"agentId":"coder","sessionId":"s","status":"running"}
chunks chunk {"id":"m2.3","agentId":"coder","sessionId":"s","text":"I look. ","messageId":"m2","turn":0,"timestamp":1705847000003}
chunks chunk {"id":"m2.4","agentId":"coder","sessionId":"s","text":"Now.","messageId":"m2","turn":0,"timestamp":1705847000004}
toolCalls tool {"id":"c1","agentId":"coder","sessionId":"s","tool":"Read","input":null,"status":"pending","timestamp":1705847000006}
toolCalls tool {"id":"c1","agentId":"coder","sessionId":"s","tool":"Read","input":{"path":"a"},"status":"running","timestamp":1705847000009}
toolCalls tool {"id":"c1","agentId":"coder","sessionId":"s","tool":"Read","input":{"path":"a"},"output":"text","status":"complete","timestamp":1705847000010}
chunks chunk {"id":"m3.12","agentId":"user:ada","userId":"ada","sessionId":"s","text":"Faster","messageId":"m3","role":"user","turn":0,"timestamp":1705847000012}
agentState complete {"agentId":"coder","sessionId":"s","status":"completed"}
presence presence {"userId":"bob","sessionId":"s","joinedAt":1705847000000}
terminal output {"id":"terminal.16","sessionId":"s","type":"output","data":"ok","source":"main","timestamp":1705847000016}
workflow entered {"id":"workflow.17","sessionId":"s","taskId":"task1","type":"entered","payload":{"element":"task1"},"timestamp":1705847000017}
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
	l.checkFromAnywhere(t)
}

// TestErasedRowsKeepTheirNumbers: an erasure moves no row.
func TestErasedRowsKeepTheirNumbers(t *testing.T) {
	l := conversation(t)
	tr := newTranslator()
	for _, line := range []string{
		`{"channel":"agentState","agentId":"a","status":"running"}`, `{"channel":"toolCalls","id":"c","agentId":"a","tool":"Read","input":{},"output":"x","status":"complete"}`,
		`{"channel":"toolCalls","id":"d","agentId":"a","tool":"Read","input":null,"status":"pending"}`, `{"channel":"toolCalls","id":"d","agentId":"a","status":"running"}`,
		`{"channel":"agentState","agentId":"a","status":"cancelled"}`, `{"channel":"workflow","id":"w","taskId":"t","type":"moved"}`,
	} {
		events, err := tr.Translate([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		l.append(t, events...)
	}
	before := l.rows(t, 0, 0)
	for i := range l.events {
		l.events[i].Data = payload.Blank(&l.events[i])
	}
	after := l.rows(t, 0, 0)
	if len(after) != len(before) {
		t.Fatalf("%d rows are %d after the erasure", len(before), len(after))
	}
	for i := range after {
		if after[i].Channel != before[i].Channel || strings.Contains(string(after[i].Data), "Fix it") {
			t.Errorf("%d: %s %s, before %s", i, after[i].Channel, after[i].Data, before[i].Channel)
		}
	}
}

// TestForgedOriginsCountForNothing: a rawEvent that says something else than its event, or
// names another agent, is not given back.
func TestForgedOriginsCountForNothing(t *testing.T) {
	begun := []tapedeck.Event{
		event("a", "r", "", payload.RunStarted{ThreadID: "a", RunID: "r"}), event("a", "r", "", payload.TextMessageStart{MessageID: "r.0", Role: payload.RoleAssistant}),
		event("a", "r", "", payload.ToolCallStart{ToolCallID: "c", ToolCallName: "Read"}), event("a", "r", "", payload.ToolCallEnd{ToolCallID: "c"}),
	}
	in := func(data string) tapedeck.Event {
		return tapedeck.Event{Thread: "a", Invocation: "r", Data: json.RawMessage(data)}
	}
	typed := func(typ, data string) tapedeck.Event {
		e := in(data)
		e.Type = typ
		return e
	}
	for name, e := range map[string]tapedeck.Event{
		"another text":           typed(tapedeck.TextMessageContent, `{"messageId":"r.0","delta":"good","rawEvent":{"channel":"chunks","id":"c","agentId":"a","text":"evil"}}`),
		"another agent":          typed(tapedeck.TextMessageContent, `{"messageId":"r.0","delta":"evil","rawEvent":{"channel":"chunks","id":"c","agentId":"evil","text":"evil"}}`),
		"another channel":        typed(tapedeck.TextMessageContent, `{"messageId":"r.0","delta":"evil","rawEvent":{"channel":"terminal","id":"c","type":"output","data":"evil"}}`),
		"another turn":           typed(tapedeck.TextMessageContent, `{"messageId":"r.0","delta":"evil","rawEvent":{"channel":"chunks","id":"c","agentId":"a","text":"evil","turn":7}}`),
		"two members":            typed(tapedeck.TextMessageContent, `{"messageId":"r.0","delta":"good","rawEvent":{"channel":"chunks","id":"c","agentId":"a","text":"good","text":"evil"}}`),
		"another case":           typed(tapedeck.TextMessageContent, `{"messageId":"r.0","delta":"good","rawEvent":{"channel":"chunks","id":"c","agentId":"a","Text":"good","text":"evil"}}`),
		"another result":         typed(tapedeck.ToolCallResult, `{"messageId":"x","toolCallId":"c","role":"tool","content":"good","rawEvent":{"channel":"toolCalls","id":"c","agentId":"a","output":"evil","status":"complete"}}`),
		"another call":           typed(tapedeck.ToolCallResult, `{"messageId":"x","toolCallId":"c","role":"tool","content":"evil","rawEvent":{"channel":"toolCalls","id":"evil","agentId":"a","output":"evil","status":"complete"}}`),
		"a state":                typed(view.TypeAgentState, `{"channel":"agentState","agentId":"evil","status":"good"}`),
		"no state":               typed(view.TypeAgentState, `{"agentId":"evil","sessionId":"evil","status":"good"}`),
		"an early result":        typed(tapedeck.ToolCallResult, `{"messageId":"x","toolCallId":"c","role":"tool","content":"good","rawEvent":{"channel":"toolCalls","id":"c","agentId":"a","output":"good","error":"evil","status":"error"}}`),
		"another tool":           typed(tapedeck.ToolCallResult, `{"messageId":"x","toolCallId":"c","role":"tool","content":"good","rawEvent":{"channel":"toolCalls","id":"c","agentId":"a","tool":"evil","output":"good","status":"complete"}}`),
		"a start with an output": typed(tapedeck.ToolCallStart, `{"toolCallId":"c2","toolCallName":"Read","rawEvent":{"channel":"toolCalls","id":"c2","agentId":"a","tool":"Read","output":"evil","status":"complete"}}`),
		"a start with an input":  typed(tapedeck.ToolCallStart, `{"toolCallId":"c2","toolCallName":"Read","rawEvent":{"channel":"toolCalls","id":"c2","agentId":"a","tool":"Read","input":"evil","status":"pending"}}`),
		"another user":           typed(tapedeck.PresenceJoined, `{"user":"good","rawEvent":{"channel":"presence","userId":"evil"}}`),
		"another output":         typed(tapedeck.TerminalOutput, `{"terminal":"main","data":"good","rawEvent":{"channel":"terminal","id":"t","type":"output","data":"evil"}}`),
		"another step":           typed(view.WorkflowTaskStep+"good", `{"id":"w","taskId":"t","rawEvent":{"channel":"workflow","id":"w","taskId":"t","type":"evil"}}`),
	} {
		l := new(tape)
		l.append(t, begun...)
		l.append(t, e)
		rows := l.rows(t, 0, 0)
		row := rows[len(rows)-1]
		b := string(row.AppendJSON(nil))
		if forged := strings.Contains(b, `"evil"`) && e.Type != tapedeck.TextMessageContent && name != "another call" || strings.Contains(b, `"agentId":"evil"`) ||
			strings.Contains(b, `"text":"evil"`) && strings.Contains(string(e.Data), `"delta":"good"`) || strings.Contains(b, `"turn":7`) || row.Channel == "terminal" != (e.Type == tapedeck.TerminalOutput); forged {
			t.Errorf("%s: %s", name, b)
		}
	}
}
