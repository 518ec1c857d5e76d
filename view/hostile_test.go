package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestDroppedMessagesAreForgotten: messages and calls that a MESSAGES_SNAPSHOT
// drops do not stay in memory.
func TestDroppedMessagesAreForgotten(t *testing.T) {
	var c Conversation
	for i := range int64(1000) {
		e := event(tapedeck.MessagesSnapshot, fmt.Sprintf(
			`{"messages":[{"id":"a%d","role":"assistant","toolCalls":[{"id":"c%d","function":{"name":"Read","arguments":"{}"}}]}]}`, i, i))
		e.Offset = i
		c.Apply(&e)
	}
	s := c.Snapshot()
	if len(s.Messages) != 1 || len(s.Calls) != 1 || s.Messages[0].ID != "a999" || s.Threads[0].Messages != 1 {
		t.Errorf("%d messages, %d calls, %+v", len(s.Messages), len(s.Calls), s.Threads)
	}
	l := c.lanes[tapedeck.MainThread]
	if n := len(l.messages.items) + len(l.calls.items) + len(l.message) + len(l.call) + len(l.groups[spokenGroup]); n > 150 {
		t.Errorf("%d of 1,000 are kept", n)
	}
}

// TestNothingStaysOpen: ended runs leave no work behind, so an event costs the
// same after a million runs as after one.
func TestNothingStaysOpen(t *testing.T) {
	var c Conversation
	offset := int64(0)
	apply := func(typ, data string, i int) {
		e := event(typ, data)
		e.Offset, e.Invocation = offset, fmt.Sprintf("i%d", i)
		c.Apply(&e)
		offset++
	}
	for i := range 100 {
		apply(tapedeck.RunStarted, `{}`, i)
		apply(tapedeck.TextMessageStart, `{"messageId":"m"}`, i)
		apply(tapedeck.ToolCallStart, `{"toolCallId":"c"}`, i)
		apply(tapedeck.RunError, `{}`, i)
		apply(tapedeck.TextMessageEnd, `{"messageId":"m"}`, i)
		apply(tapedeck.ToolCallEnd, `{"toolCallId":"c"}`, i)
	}
	if open := c.lanes[tapedeck.MainThread].open; len(open) != 0 {
		t.Errorf("%d invocations are open", len(open))
	}
}

// TestDeepData: data that is nested too deep to be encoded is malformed in
// every member.
func TestDeepData(t *testing.T) {
	deep := strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990)
	quoted, _ := json.Marshal(deep)
	for typ, data := range map[string]string{
		tapedeck.StateSnapshot:    `{"snapshot":%s}`,
		tapedeck.StateDelta:       `{"delta":[{"op":"add","path":"/x","value":%s}]}`,
		tapedeck.MessageAdded:     `{"message":{"id":"m","role":"user","content":%s}}`,
		tapedeck.TextMessageStart: `{"messageId":"m","metadata":{"x":%s}}`,
		tapedeck.RunFinished:      `{"result":%s}`,
		tapedeck.ToolCallResult:   `{"toolCallId":"c","content":%s}`,
		tapedeck.ActivitySnapshot: `{"messageId":"m","content":%s}`,
	} {
		var c Conversation
		e := event(typ, fmt.Sprintf(data, deep))
		c.Apply(&e)
		if _, err := json.Marshal(c.Snapshot()); err != nil || len(c.notes) != 1 {
			t.Errorf("%s: %v, notes %v", typ, err, c.notes)
		}
	}
	var c Conversation
	for i, e := range []tapedeck.Event{
		event(tapedeck.ToolCallArgs, fmt.Sprintf(`{"toolCallId":"c","delta":%s}`, quoted)),
		event(tapedeck.ToolCallEnd, `{"toolCallId":"c"}`),
	} {
		e.Offset = int64(i)
		c.Apply(&e)
	}
	s := c.Snapshot()
	if _, err := json.Marshal(s); err != nil || s.Calls[0].Input != nil || s.Calls[0].Arguments != deep {
		t.Errorf("deep arguments: %v", err)
	}
}

// TestDocumentsShareOneBudget: many small documents that are doubled a few
// times cost as much as one large document. So do many threads that begin with
// a large state.
func TestDocumentsShareOneBudget(t *testing.T) {
	for name, next := range map[string]func(i int) []tapedeck.Event{
		"activities": func(i int) []tapedeck.Event {
			id := fmt.Sprintf("a%d", i)
			return []tapedeck.Event{
				event(tapedeck.ActivitySnapshot, `{"messageId":"`+id+`","activityType":"X","content":{"x":[1]}}`),
				event(tapedeck.ActivityDelta, `{"messageId":"`+id+`","patch":[`+strings.Repeat(`{"op":"copy","from":"","path":"/x/-"},`, 20)+`{"op":"test","path":"/x/0","value":1}]}`),
			}
		},
		"threads": func(i int) []tapedeck.Event {
			e := event(tapedeck.StateDelta, `{"delta":[{"op":"add","path":"/y","value":1}]}`)
			e.Thread = fmt.Sprintf("t%d", i)
			return []tapedeck.Event{e}
		},
	} {
		var c Conversation
		created := event(tapedeck.SessionCreated, `{"state":{"x":"`+strings.Repeat("x", 1<<20)+`"}}`)
		c.Apply(&created)
		for i := range 200 {
			for _, e := range next(i) {
				e.Offset = c.next
				c.Apply(&e)
			}
		}
		total := 0
		for _, l := range c.lanes {
			for _, m := range l.messages.items {
				total += len(m.doc.value())
			}
			if l.state.doc != nil {
				total += len(l.state.value())
			}
		}
		if total > 3*initialBudget {
			t.Errorf("%s: %d MiB", name, total>>20)
		}
		if len(c.notes) == 0 {
			t.Errorf("%s: nothing was refused", name)
		}
	}
}
