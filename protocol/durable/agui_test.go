package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/view"
)

// spoken returns the conversation of a thread, in short: the messages, and the calls in has.
// After a MESSAGES_SNAPSHOT our own fold keeps calls without a message, and their answers;
// a client of AG-UI does not. So calls are in the order of their ids.
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
	var calls []string
	for _, k := range s.Calls {
		if known[k.ID] {
			calls = append(calls, k.ID+" "+k.Name)
		}
	}
	slices.Sort(calls)
	return append(out, calls...)
}

// A talk is a session with turns, messages of external clients, and rewinds.
type talk struct {
	t             rapid.TB
	o             durable.Options
	handler       http.Handler
	head, rewound int64
	steps         int
}

func newTalk(t rapid.TB) *talk {
	s := &talk{t: t, o: options(newMemory()), head: 1}
	s.handler = durable.New(s.o)
	do(t, s.handler, "PUT", "sessions/s", "")
	return s
}

func (s *talk) append(events ...tapedeck.Event) {
	done, err := s.o.Store.Append(context.Background(), tapedeck.Append{Session: "s", Events: events})
	if err != nil {
		s.t.Fatal(err)
	}
	s.head = done.Next
	s.steps++
}

func (s *talk) turn(thread string) { s.append(turn(s.steps, thread)...) }

func (s *talk) rewind(to int64) {
	data := fmt.Sprintf(`{"marker":"m%d","toOffset":%d,"previous":%d}`, s.head, to, s.rewound)
	s.rewound = s.head
	s.append(tapedeck.Event{Type: tapedeck.SessionRewound, Data: json.RawMessage(data)})
}

// whole appends a message as an external client does.
func (s *talk) whole(thread string) {
	s.append(tapedeck.Event{Type: tapedeck.MessageAdded, Thread: thread, Data: json.RawMessage(fmt.Sprintf(
		`{"message":{"id":"x%d","role":"assistant","content":"look","toolCalls":[{"id":"k%d","type":"function","function":{"name":"Look","arguments":"{}"}}]}}`, s.steps, s.steps))})
}

// check compares the conversation of the main thread with that of a client that folds the
// view agui. AG-UI must allow the order of its events.
func (s *talk) check() {
	t := s.t
	var told []json.RawMessage
	decode(t, do(t, s.handler, "GET", "sessions/s/views/agui?thread=main", ""), &told)
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
	want, err := s.o.Views.Snapshot(context.Background(), "s", view.Query{Thread: "main", Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	got := client.Thread("main")
	if diff := cmp.Diff(spoken(&want, &want), spoken(&got, &want)); diff != "" {
		t.Fatalf("(-log +client)\n%s", diff)
	}
}

// A client that folds the view agui of a thread gets the messages of people and agents
// there, whatever was reverted before the newest run.
func TestAGUIViewIsTheConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newTalk(t)
		thread := rapid.SampledFrom([]string{"main", "side"})
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				s.rewind(rapid.Int64Range(1, s.head).Draw(t, "to"))
			case 1:
				s.whole(thread.Draw(t, "thread"))
			default:
				s.turn(thread.Draw(t, "thread"))
			}
		}
		s.turn("main")
		s.check()
	})
}

// A rewind goes back to a moment that an earlier rewind has reverted: the snapshot has a
// call again that an earlier one has left out, before one that our own fold has kept.
func TestAGUIViewAfterARewindToWhatWasReverted(t *testing.T) {
	s := newTalk(t)
	s.whole("main")
	s.turn("main")
	s.whole("main")
	s.rewind(1)
	s.turn("main")
	s.rewind(6)
	s.turn("main")
	s.check()
}
