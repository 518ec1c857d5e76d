package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/view"
)

// spoken returns the conversation of a thread, in short: the messages and the calls in has.
// After a MESSAGES_SNAPSHOT our own fold keeps calls without a message, and their answers;
// a client of AG-UI does not.
func spoken(s, has *view.Snapshot) (out []string) {
	known := map[string]bool{}
	for _, k := range has.Calls {
		known[k.ID] = true
	}
	for _, m := range s.Messages {
		if m.Role != payload.RoleTool && payload.PromptOf(m.Role, m.Metadata) == "" && (m.Text != "" || m.Parts != nil) {
			out = append(out, fmt.Sprint(m.ID, " ", m.Role, " ", m.Text))
		}
	}
	for _, k := range s.Calls {
		if !known[k.ID] {
			continue
		}
		out = append(out, k.ID+" "+k.Name)
	}
	return out
}

// A client that folds the view agui of a thread gets the messages of people and agents
// there, whatever was reverted before the newest run. AG-UI allows the order of the events.
func TestAGUIViewIsTheConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := options(newMemory())
		handler := durable.New(o)
		do(t, handler, "PUT", "sessions/s", "")
		head, last := int64(1), int64(0)
		appendAll := func(events ...tapedeck.Event) {
			done, err := o.Store.Append(context.Background(), tapedeck.Append{Session: "s", Events: events})
			if err != nil {
				t.Fatal(err)
			}
			head = done.Next
		}
		thread := rapid.SampledFrom([]string{"main", "side"})
		for i := range rapid.IntRange(0, 8).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				data := fmt.Sprintf(`{"marker":"m%d","toOffset":%d,"previous":%d}`, head, rapid.Int64Range(1, head).Draw(t, "to"), last)
				last = head
				appendAll(tapedeck.Event{Type: tapedeck.SessionRewound, Data: json.RawMessage(data)})
			case 1: // an external client appends a message
				appendAll(tapedeck.Event{Type: tapedeck.MessageAdded, Thread: thread.Draw(t, "thread"), Data: json.RawMessage(fmt.Sprintf(
					`{"message":{"id":"x%d","role":"assistant","content":"look","toolCalls":[{"id":"k%d","type":"function","function":{"name":"Look","arguments":"{}"}}]}}`, i, i))})
			default:
				appendAll(turn(i, thread.Draw(t, "thread"))...)
			}
		}
		appendAll(turn(99, "main")...)

		var told []json.RawMessage
		decode(t, do(t, handler, "GET", "sessions/s/views/agui?thread=main", ""), &told)
		var client view.Conversation
		client.Keep()
		order := order.NewVerifier()
		for n, raw := range told {
			var head struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal(raw, &head); err != nil {
				t.Fatal(err)
			}
			events, err := order.Accept([]tapedeck.Event{{Type: head.Type, Data: raw}})
			if err != nil || len(events) != 1 {
				t.Fatalf("message %d, %s: %v", n, raw, err)
			}
			e := events[0]
			e.Offset, e.Channel = int64(n), tapedeck.ChannelOf(e.Type)
			client.Apply(&e)
		}
		want, err := o.Views.Snapshot(context.Background(), "s", view.Query{Thread: "main", Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		got := client.Thread("main")
		if diff := cmp.Diff(spoken(&want, &want), spoken(&got, &want)); diff != "" {
			t.Fatalf("(-log +client)\n%s", diff)
		}
	})
}
