package agui_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// BenchmarkConnect restores a thread of a thousand messages.
func BenchmarkConnect(b *testing.B) {
	w := benchThread(b, func(i int) tapedeck.Event {
		return payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(fmt.Sprint("m", i), payload.RoleUser, "the quick brown fox jumps over the lazy dog")})
	}, 1000)
	b.ReportAllocs()
	for b.Loop() {
		w.run("/agui/steps/connect", input("s", "x", "u", ""))
	}
}

// BenchmarkConnectInRun restores a thread in the middle of a message of twenty
// thousand words. A question of the agent ends the stream.
func BenchmarkConnectInRun(b *testing.B) {
	begin := []string{`RUN_STARTED {"threadId":"main","runId":"r"}`, `TEXT_MESSAGE_START {"messageId":"m"}`}
	w := benchThread(b, func(i int) tapedeck.Event {
		if i < len(begin) {
			var typ, data string
			_, _ = fmt.Sscanf(begin[i], "%s %s", &typ, &data)
			return tapedeck.Event{Type: typ, Data: json.RawMessage(data), Invocation: "r"}
		}
		if i == 20_000-1 {
			return tapedeck.Event{Type: tapedeck.PermissionRequested, Invocation: "r", Data: json.RawMessage(`{"id":"p","options":[{"id":"yes"}]}`)}
		}
		return tapedeck.Event{Type: tapedeck.TextMessageContent, Invocation: "r", Data: json.RawMessage(`{"messageId":"m","delta":"word "}`)}
	}, 20_000)
	b.ReportAllocs()
	for b.Loop() {
		w.run("/agui/steps/connect", input("s", "x", "u", ""))
	}
}

// benchThread returns a world with a session of n events.
func benchThread(b *testing.B, event func(i int) tapedeck.Event, n int) *world {
	w := newWorld(b)
	if _, err := w.Create(b.Context(), api.NewSession{ID: "s"}); err != nil {
		b.Fatal(err)
	}
	events := make([]tapedeck.Event, n)
	for i := range events {
		events[i] = event(i)
	}
	if _, err := w.Append(b.Context(), tapedeck.Append{Session: "s", Events: events}); err != nil {
		b.Fatal(err)
	}
	return w
}
