package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/catalogdoc"
	"github.com/tapedeck/tapedeck/payload"
)

// erased returns e without its payload, as a store does.
func erased(t *testing.T, e tapedeck.Event) tapedeck.Event {
	t.Helper()
	data, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	r, err := EraseRecord(tapedeck.Record{Offset: e.Offset, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Event()
	if err != nil {
		t.Fatalf("%s: %v", r.Data, err)
	}
	return out
}

// TestErasedEventsAreStillOfTheirType erases the examples of the documentation: they
// must still have all members that their type requires, and a second erasure must
// change nothing.
func TestErasedEventsAreStillOfTheirType(t *testing.T) {
	_, types := catalogdoc.Read(t, "../docs/events.md")
	for name, doc := range types {
		var e tapedeck.Event
		if name == "" || json.Unmarshal([]byte(doc.Example), &e) != nil {
			continue
		}
		once := erased(t, e)
		if err := payload.CheckData(&once); err != nil {
			t.Errorf("%s became %s: %v", name, once.Data, err)
		}
		if once.Erased() == (name == tapedeck.SessionRedacted) {
			t.Errorf("%s: that it was erased is said in %s", name, once.Data)
		}
		if d := cmp.Diff(once, erased(t, once)); d != "" {
			t.Errorf("%s erased again: %s", name, d)
		}
		once.Data, e.Data = nil, nil
		if d := cmp.Diff(e, once); d != "" {
			t.Errorf("%s: outside of the data: %s", name, d)
		}
	}
}

// TestErasedEventsSayNothing fills every member of every type, at any depth, with a word
// that is no id, and looks for it after the erasure.
func TestErasedEventsSayNothing(t *testing.T) {
	_, types := catalogdoc.Read(t, "../docs/events.md")
	text := regexp.MustCompile(`"((?:[^"\\]|\\.)*)"( *:)?`)
	keep := map[string]bool{"owner": true, "agent": true, "thread": true, "status": true, "beforeInvocation": true}
	for name, doc := range types {
		var e tapedeck.Event
		if name == "" || name == tapedeck.SessionRedacted || json.Unmarshal([]byte(doc.Example), &e) != nil {
			continue
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(e.Data, &members); err != nil {
			t.Fatal(err)
		}
		for m := range members {
			if keep[m] {
				delete(members, m)
			}
		}
		members["unknown"] = []byte(`{"deep":["x"]}`)
		members["rawEvent"], members["metadata"] = []byte(`{"x":"y"}`), []byte(`{"x":{"y":"z"}}`)
		data, _ := json.Marshal(members)
		e.Data = text.ReplaceAllFunc(data, func(s []byte) []byte {
			if bytes.HasSuffix(s, []byte(":")) {
				return s
			}
			return []byte(`"a secret"`)
		})
		if got := erased(t, e); bytes.Contains(got.Data, []byte("secret")) {
			t.Errorf("%s became %s", name, got.Data)
		}
	}
}

func TestWhatErasedEventsKeep(t *testing.T) {
	for _, c := range []struct{ typ, data, want string }{
		{tapedeck.MessageAdded, `{"message":{"id":"m1","role":"user","content":"my name"}}`, `{"erased":true,"message":{"id":"m1","role":"user","content":""}}`},
		{tapedeck.MessageAdded, `{"message":{"id":"m1","role":"tool","content":[{"type":"text","text":"x"}],"toolCallId":"c","error":"x"}}`,
			`{"erased":true,"message":{"id":"m1","role":"tool","content":"","toolCallId":"c"}}`},
		{tapedeck.MessageAdded, `{"message":{"id":"m1","role":"assistant","toolCalls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{}"}},{"id":"c2"}]}}`,
			`{"erased":true,"message":{"id":"m1","role":"assistant","toolCalls":[{"id":"c1","type":"function","function":{"name":"","arguments":""}},{"id":"c2","type":"","function":{}}]}}`},
		{tapedeck.TextMessageContent, `{"messageId":"a name with spaces","delta":"x","cuts":[[1,0]]}`, `{"erased":true,"messageId":"erased-43998174df22ca59","delta":""}`},
		{tapedeck.ToolCallStart, `{"toolCallId":"c","toolCallName":"Read","parentMessageId":"m"}`, `{"erased":true,"toolCallId":"c","toolCallName":"","parentMessageId":"m"}`},
		{tapedeck.RunStarted, `{"threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[]}}`, `{"erased":true,"threadId":"t","runId":"r"}`},
		{tapedeck.RunFinished, `{"threadId":"t","runId":"r","result":"x","outcome":{"type":"cancelled"},"usage":[{"inputTokens":4}]}`,
			`{"erased":true,"threadId":"t","runId":"r","outcome":{"type":"cancelled"},"metadata":{"tapedeck":{"resumable":true}}}`},
		{tapedeck.RunFinished, `{"threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"why"}]}}`,
			`{"erased":true,"threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":""}]}}`},
		{tapedeck.RunError, `{"message":"it broke","code":"interrupted_by_restart"}`, `{"erased":true,"message":"","code":"interrupted_by_restart"}`},
		{tapedeck.RunError, `{"message":"it broke","code":"my code"}`, `{"erased":true,"message":""}`},
		{tapedeck.StateSnapshot, `{"snapshot":"x"}`, `{"erased":true,"snapshot":{}}`},
		{tapedeck.SessionCreated, `{"title":"x","owner":"ada","agent":"coder","labels":{"a":"b"},"state":{}}`, `{"erased":true,"title":"","owner":"ada","agent":"coder","labels":{}}`},
		{tapedeck.SessionRenamed, `{"title":"x"}`, `{"erased":true,"title":""}`},
		{tapedeck.SessionRenamed, `{"labels":{}}`, `{"erased":true,"labels":{}}`},
		{tapedeck.SessionRenamed, `{"title":null}`, `{"erased":true}`},
		{tapedeck.SessionRewound, `{"marker":"mk","toOffset":3,"previous":1,"status":"idle"}`, `{"erased":true,"marker":"mk","previous":1,"status":"idle","toOffset":3}`},
		{"acme.note", `{"id":"x"}`, `{"erased":true}`},
		{tapedeck.Custom, `"not an object"`, `{"erased":true,"name":"","value":{}}`},
		{tapedeck.SessionRedacted, `{"offsets":[],"reason":"x"}`, `{"offsets":[],"reason":"x"}`},
	} {
		if got := erased(t, tapedeck.Event{Type: c.typ, Channel: tapedeck.ChannelOf(c.typ), Data: []byte(c.data)}); string(got.Data) != c.want {
			t.Errorf("%s %s\nbecame %s\nwant   %s", c.typ, c.data, got.Data, c.want)
		}
	}
}

func TestErasureValid(t *testing.T) {
	receipt := []tapedeck.Event{{Type: tapedeck.SessionRedacted}}
	for _, c := range []struct {
		ranges []tapedeck.OffsetRange
		ok     bool
	}{
		{nil, false},
		{[]tapedeck.OffsetRange{{From: 0, To: 1}}, true},
		{[]tapedeck.OffsetRange{{From: 1, To: 1}}, false},
		{[]tapedeck.OffsetRange{{From: 2, To: 1}}, false},
		{[]tapedeck.OffsetRange{{From: -1, To: 1}}, false},
		{[]tapedeck.OffsetRange{{From: 0, To: 2}, {From: 2, To: 3}}, true},
		{[]tapedeck.OffsetRange{{From: 0, To: 2}, {From: 1, To: 3}}, false},
	} {
		if err := CheckErasure(&tapedeck.Erasure{Ranges: c.ranges, Events: receipt}); err == nil != c.ok {
			t.Errorf("%v: %v", c.ranges, err)
		}
	}
	if err := CheckErasure(&tapedeck.Erasure{Ranges: []tapedeck.OffsetRange{{From: 0, To: 1}}}); err == nil {
		t.Error("without a receipt")
	}
	s := tapedeck.Session{ID: "b", Kind: tapedeck.KindSession, Parent: "a", ForkedAt: 3, Head: 6}
	for r, want := range map[[2]int64]tapedeck.Kind{{3, 6}: "", {2, 4}: tapedeck.Invalid, {4, 7}: tapedeck.Invalid} {
		e := tapedeck.Erasure{Ranges: []tapedeck.OffsetRange{{From: r[0], To: r[1]}}}
		if got := tapedeck.KindOf(DecideErasure(&e, &s)); got != want {
			t.Errorf("%v: %s", r, got)
		}
	}
	if got := tapedeck.KindOf(DecideErasure(&tapedeck.Erasure{Ranges: []tapedeck.OffsetRange{{From: 3, To: 4}}}, &tapedeck.Session{Kind: tapedeck.KindStream, Head: 9})); got != tapedeck.NotFound {
		t.Errorf("a stream: %s", got)
	}
}

func ExampleEraseRecord() {
	e := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("msg_1", payload.RoleUser, "my number is 555")})
	_, drafts, _ := tapedeck.Drafts([]tapedeck.Event{e}, nil, time.Date(2026, 1, 5, 12, 34, 56, 789e6, time.UTC))
	r, _ := EraseRecord(drafts[0].Record(7))
	fmt.Println(string(r.Data))
	// Output: {"offset":7,"type":"message.added","channel":"chunks","timestamp":"2026-01-05T12:34:56.789Z","data":{"erased":true,"message":{"id":"msg_1","role":"user","content":""}}}
}
