package view_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A script builds a log step by step.
type script struct {
	events []tapedeck.Event
	thread string
	run    string
}

func (s *script) say(typ, format string, args ...any) {
	s.events = append(s.events, tapedeck.Event{
		Offset: int64(len(s.events)), Type: typ, Channel: tapedeck.ChannelOf(typ), Thread: s.thread, Invocation: s.run,
		Data: json.RawMessage(fmt.Sprintf(format, args...)),
	})
}

// turn adds a run with a question, a call and an answer.
func (s *script) turn(i int) {
	s.run = fmt.Sprint("i", i)
	s.say(tapedeck.MessageAdded, `{"message":{"id":"u%d","role":"user","content":"question %d"}}`, i, i)
	s.say(tapedeck.RunStarted, `{}`)
	s.say(tapedeck.TextMessageStart, `{"messageId":"m%d"}`, i)
	s.say(tapedeck.ToolCallStart, `{"toolCallId":"c%d","toolCallName":"Read","parentMessageId":"m%d"}`, i, i)
	s.say(tapedeck.ToolCallArgs, `{"toolCallId":"c%d","delta":"{}"}`, i)
	s.say(tapedeck.ToolCallEnd, `{"toolCallId":"c%d"}`, i)
	s.say(tapedeck.ToolCallResult, `{"toolCallId":"c%d","messageId":"r%d","content":"ok"}`, i, i)
	s.say(tapedeck.TextMessageContent, `{"messageId":"m%d","delta":"answer %d"}`, i, i)
	s.say(tapedeck.TextMessageEnd, `{"messageId":"m%d"}`, i)
	s.say(tapedeck.RunFinished, `{}`)
}

func TestWhatIsKeptDoesNotGrow(t *testing.T) {
	size := func(turns int) (int, view.Snapshot) {
		var s script
		for i := range turns {
			s.turn(i)
		}
		c := fold(s.events)
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return len(b), c.Snapshot()
	}
	short, _ := size(view.Window)
	long, snapshot := size(10 * view.Window)
	if long > short*11/10 {
		t.Errorf("a checkpoint has %d bytes after %d turns, %d after ten times as many", short, view.Window, long)
	}
	if n := len(snapshot.Messages); n != view.Window || snapshot.Earlier != 19*view.Window {
		t.Errorf("%d messages, and %d before them", n, snapshot.Earlier)
	}
	if len(snapshot.Calls) != view.Window || len(snapshot.Runs) != view.Window || snapshot.Threads[0].Messages != 20*view.Window {
		t.Errorf("%d calls, %d runs, %+v", len(snapshot.Calls), len(snapshot.Runs), snapshot.Threads[0])
	}
}

// TestKeptConversationIsWhole: a conversation that keeps settled items shows
// all of them, in order.
func TestKeptConversationIsWhole(t *testing.T) {
	var c view.Conversation
	c.Keep()
	var s script
	for i := range 3 * view.Window {
		if s.thread = ""; i%5 == 0 {
			s.thread = "side"
		}
		s.turn(i)
	}
	for i := range s.events {
		c.Apply(&s.events[i])
	}
	snapshot := c.Snapshot()
	if len(snapshot.Messages) != 6*view.Window || len(snapshot.Calls) != 3*view.Window || len(snapshot.Runs) != 3*view.Window || snapshot.Earlier != 0 {
		t.Fatalf("%d messages, %d calls, %d runs", len(snapshot.Messages), len(snapshot.Calls), len(snapshot.Runs))
	}
	for i := range 3 * view.Window {
		u, m := snapshot.Messages[2*i], snapshot.Messages[2*i+1]
		if u.ID != fmt.Sprint("u", i) || m.ID != fmt.Sprint("m", i) || m.Text != fmt.Sprint("answer ", i) || snapshot.Calls[i].Status != "complete" {
			t.Fatalf("turn %d: %+v, %+v", i, u, m)
		}
	}
}

// TestKeptForAPageIsBounded: a page has a limit of bytes. What is kept for it does not grow
// with the conversation, and the newest items are whole.
func TestKeptForAPageIsBounded(t *testing.T) {
	const bytes = 100_000
	var s script
	for i := range 20 * view.Window {
		s.say(tapedeck.MessageAdded, `{"message":{"id":"u%d","role":"user","content":"%01000d"}}`, i, i)
	}
	var c, later view.Conversation
	for i := range s.events {
		later.Apply(&s.events[i])
	}
	c.KeepFor(view.Query{Bytes: bytes, Before: int64(len(s.events))}, &later)
	for i := range s.events {
		c.Apply(&s.events[i])
	}
	items, whole := c.Settled()
	size := 0
	for _, m := range items.Messages {
		if size += len(m.Text); m.Offset >= whole && len(m.Text) != 1000 {
			t.Errorf("message %d has %d bytes", m.Offset, len(m.Text))
		}
	}
	if n := len(items.Messages); n != 19*view.Window || whole == 0 || size > 2*bytes {
		t.Errorf("%d messages of %d bytes, whole from %d", n, size, whole)
	}
}

// TestSnapshotOfWhatHasSettled: a MESSAGES_SNAPSHOT also restates settled
// messages. It drops those that it does not have, and its own have its order.
func TestSnapshotOfWhatHasSettled(t *testing.T) {
	var c view.Conversation
	c.Keep()
	var s script
	for i := range 2 * view.Window {
		s.turn(i)
	}
	s.run = "last"
	var list []string
	for i := range 2 * view.Window {
		if i != 3 { // settled
			list = append(list, fmt.Sprintf(`{"id":"u%d","role":"user","content":"again %d"}`, i, i))
		}
	}
	s.say(tapedeck.MessagesSnapshot, `{"messages":[%s]}`, strings.Join(list, ","))
	for i := range s.events {
		c.Apply(&s.events[i])
	}
	snapshot := c.Snapshot()
	if len(snapshot.Messages) != 2*view.Window-1 || snapshot.Threads[0].Messages != 2*view.Window-1 || len(snapshot.Calls) != 0 {
		t.Fatalf("%d messages, %d calls, %+v", len(snapshot.Messages), len(snapshot.Calls), snapshot.Threads)
	}
	for i, m := range snapshot.Messages {
		if i >= 3 {
			i++
		}
		if m.ID != fmt.Sprint("u", i) || m.Text != fmt.Sprint("again ", i) {
			t.Fatalf("message %d is %+v", i, m)
		}
	}
}

// TestCheckpointContinues: a decoded conversation folds on like the original.
func TestCheckpointContinues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		if rapid.Bool().Draw(t, "long") {
			var s script
			for i := range view.Window/2 + 10 {
				s.turn(i)
			}
			for _, e := range events {
				e.Offset = int64(len(s.events))
				s.events = append(s.events, e)
			}
			events = s.events
		}
		cut := rapid.IntRange(0, len(events)).Draw(t, "cut")
		var first, second view.Conversation
		for i := range events[:cut] {
			first.Apply(&events[i])
		}
		b, err := json.Marshal(&first)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &second); err != nil {
			t.Fatal(err)
		}
		whole := fold(events)
		for i := range events[cut:] {
			second.Apply(&events[cut+i])
		}
		if d := cmp.Diff(mustJSON(t, whole.Snapshot()), mustJSON(t, second.Snapshot())); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(mustJSON(t, whole), mustJSON(t, &second)); d != "" {
			t.Fatal(d)
		}
	})
}

func TestDamagedCheckpoint(t *testing.T) {
	for _, saved := range []string{
		`[]`, `{"lanes":[{"calls":[{"maker":3}]}]}`, `{"lanes":[{"open":[{"messages":[0]}]}]}`,
		`{"lanes":[{"open":[{"calls":[-1]}]}]}`, `{"lanes":[{"open":[{"run":7}]}]}`,
	} {
		if err := json.Unmarshal([]byte(saved), new(view.Conversation)); err == nil {
			t.Errorf("%s was accepted", saved)
		}
	}
}
