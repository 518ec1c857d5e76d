package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/view"
)

// turn returns the events of a whole turn.
func turn(i int, thread string) []tapedeck.Event { return turnOf(i, i, thread) }

// turnOf is [turn] for an agent whose ids have the number id.
func turnOf(i, id int, thread string) []tapedeck.Event {
	inv := fmt.Sprint("i", i)
	say := func(typ, format string, args ...any) tapedeck.Event {
		return tapedeck.Event{Type: typ, Thread: thread, Invocation: inv, Data: json.RawMessage(fmt.Sprintf(format, args...))}
	}
	return []tapedeck.Event{
		say(tapedeck.MessageAdded, `{"message":{"id":"u%d","role":"user","content":"question"}}`, i),
		say(tapedeck.RunStarted, `{"threadId":"t","runId":"i%d"}`, i),
		say(tapedeck.StateDelta, `{"delta":[{"op":"add","path":"/n","value":%d}]}`, i),
		say(tapedeck.ToolCallStart, `{"toolCallId":"c%d","toolCallName":"Read"}`, id),
		say(tapedeck.ToolCallArgs, `{"toolCallId":"c%d","delta":"{}"}`, id),
		say(tapedeck.ToolCallEnd, `{"toolCallId":"c%d"}`, id),
		say(tapedeck.ToolCallResult, `{"toolCallId":"c%d","messageId":"r%d","content":"ok"}`, id, id),
		say(tapedeck.TextMessageStart, `{"messageId":"m%d"}`, id),
		say(tapedeck.TextMessageContent, `{"messageId":"m%d","delta":"answer %d"}`, id, i),
		say(tapedeck.TextMessageEnd, `{"messageId":"m%d"}`, id),
		say(tapedeck.RunFinished, `{"threadId":"t","runId":"i%d"}`, i),
	}
}

// A client that folds the changes of a view has the active entities, whatever was reverted
// and restored.
func TestViewsFollowJumps(t *testing.T) {
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
		thread := rapid.SampledFrom([]string{"", "", "side"})
		for i := range rapid.IntRange(1, 8).Draw(t, "steps") {
			if i == 0 || rapid.IntRange(0, 2).Draw(t, "step") > 0 {
				if of := thread.Draw(t, "thread"); of == "" {
					appendAll(turnOf(i, i%2, of)...) // the agent uses its ids again
				} else {
					appendAll(turnOf(i, 2+i%2, of)...)
				}
				continue
			}
			data := fmt.Sprintf(`{"marker":"m%d","toOffset":%d,"previous":%d`, head, rapid.Int64Range(1, head).Draw(t, "to"), last)
			if of := thread.Draw(t, "whose"); of != "" {
				data += fmt.Sprintf(`,"thread":%q`, of)
			}
			last = head
			appendAll(tapedeck.Event{Type: tapedeck.SessionRewound, Data: json.RawMessage(data + "}")})
		}
		want, err := o.Views.Snapshot(context.Background(), "s", view.Query{})
		if err != nil {
			t.Fatal(err)
		}
		wanted, names := map[string]string{}, aguiwire.NamesOf(&want)
		for _, m := range want.Messages {
			wanted["message/"+names.Message(&m)] = m.Text
		}
		for _, k := range want.Calls {
			if k.Status != tapedeck.StatusRunning {
				wanted["toolCall/"+names.Call(&k)] = ""
			}
			if k.Result != nil {
				wanted["message/"+names.Answer(k.Result)] = k.Result.Text
			}
		}
		if d := cmp.Diff(wanted, entitiesOf(t, do(t, handler, "GET", "sessions/s/views/messages", ""), "content")); d != "" {
			t.Fatalf("messages (-want +got): %s", d)
		}
		wanted = map[string]string{}
		for _, r := range want.Runs {
			wanted["run/"+r.Invocation] = string(r.Status)
		}
		got := entitiesOf(t, do(t, handler, "GET", "sessions/s/views/state", ""), "status")
		for _, th := range want.Threads {
			s, err := o.Views.Snapshot(context.Background(), "s", view.Query{Thread: th.Name})
			if err != nil {
				t.Fatal(err)
			}
			if s.State != nil {
				wanted["state/"+th.Name] = ""
			}
		}
		delete(got, "session/title")
		if d := cmp.Diff(wanted, got); d != "" {
			t.Fatalf("state (-want +got): %s", d)
		}
	})
}

// An undo restores messages and calls in the order of the conversation.
func TestUndoRestoresTheOrder(t *testing.T) {
	o := options(newMemory())
	handler := durable.New(o)
	must(t, 201, handler, "PUT", "sessions/s", "")
	events := turn(1, "")
	undone := int64(1 + len(events))
	events = append(events,
		tapedeck.Event{Type: tapedeck.SessionRewound, Data: json.RawMessage(`{"marker":"a","toOffset":1}`)},
		tapedeck.Event{Type: tapedeck.SessionRewound, Data: json.RawMessage(fmt.Sprintf(`{"marker":"b","toOffset":%d,"previous":%d}`, undone, undone))})
	if _, err := o.Store.Append(t.Context(), tapedeck.Append{Session: "s", Events: events}); err != nil {
		t.Fatal(err)
	}
	var changes []struct {
		Key     string
		Headers struct{ Operation string }
	}
	body := textOf(t, must(t, 200, handler, "GET", "sessions/s/views/messages?offset="+offsetAt(int(undone)+1), ""))
	if err := json.Unmarshal([]byte(body), &changes); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range changes {
		got += c.Headers.Operation + " " + c.Key + " "
	}
	if got != "insert u1 insert c1 insert r1 insert m1 " {
		t.Errorf("got %s", got)
	}
}

// entitiesOf folds changes as a client of the state protocol does, and keeps one
// member of each entity.
func entitiesOf(t *rapid.T, resp *http.Response, member string) map[string]string {
	var changes []json.RawMessage
	decode(t, resp, &changes)
	out := map[string]string{}
	for _, raw := range changes {
		var c struct {
			Type, Key string
			Value     map[string]any
			Headers   struct{ Operation string }
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		key := c.Type + "/" + c.Key
		_, has := out[key]
		switch c.Headers.Operation {
		case "delete":
			if !has {
				t.Fatalf("%s is deleted, but does not exist", key)
			}
			delete(out, key)
		default:
			out[key], _ = c.Value[member].(string)
		}
	}
	return out
}
