package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

func instances(events []tapedeck.Event) *view.InstanceFold {
	f := new(view.InstanceFold)
	for i := range events {
		f.Apply(&events[i])
	}
	return f
}

func TestContextFixtures(t *testing.T) {
	testFixtures(t, "context", func(t *testing.T, f viewFixture, events []tapedeck.Event) any {
		of := view.InThread("")
		if f.Instance != "" {
			found, ok := instances(events).Instances("ses").Find(f.Instance)
			if !ok {
				t.Fatal("there is no such instance")
			}
			of = found
		}
		s := fold(events).Snapshot()
		messages := view.Context(s, of)
		return map[string]any{"messages": messages, "places": view.Places(messages), "events": view.ContextEvents(s, of)}
	})
}

func TestInstanceFixtures(t *testing.T) {
	testFixtures(t, "instances", func(_ *testing.T, _ viewFixture, events []tapedeck.Event) any {
		return instances(events).Instances("ses")
	})
}

// wellFormed returns why a model's provider would refuse the messages, "" if it
// would not.
func wellFormed(messages []view.ContextMessage) string {
	var owed []string
	for i, m := range messages {
		if m.Role == "tool" {
			if len(owed) == 0 || owed[0] != m.ToolCallID {
				return fmt.Sprintf("message %d answers %s, owed are %v", i, m.ToolCallID, owed)
			}
			owed = owed[1:]
			continue
		}
		if len(owed) > 0 {
			return fmt.Sprintf("message %d comes before the answers to %v", i, owed)
		}
		if m.Content == "" && len(m.ToolCalls) == 0 || len(m.ToolCalls) > 0 && m.Role != "assistant" || m.ToolCallID != "" {
			return fmt.Sprintf("message %d is %+v", i, m)
		}
		if !slices.Contains([]string{"system", "user", "assistant"}, m.Role) {
			return "the role is " + m.Role
		}
		for _, k := range m.ToolCalls {
			var args map[string]any
			name := k.Function.Name
			if k.ID == "" || json.Unmarshal([]byte(k.Function.Arguments), &args) != nil || name == "" || len(name) > 64 || strings.ContainsAny(name, " .!/") {
				return fmt.Sprintf("call %+v", k)
			}
			owed = append(owed, k.ID)
		}
	}
	if len(owed) > 0 {
		return fmt.Sprintf("nothing answers %v", owed)
	}
	return ""
}

func TestContextIsAlwaysWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawRaw(t)
		s := fold(events).Snapshot()
		of := append(instances(events).Instances("ses"), view.InThread(""), view.InThread("side"))
		for _, i := range of {
			if why := wellFormed(view.Context(s, i)); why != "" {
				t.Fatalf("the context of %+v: %s", i, why)
			}
		}
	})
}

// TestContextEventsKeepTheirNumbers: an event keeps its sequence number as long
// as no event is reverted, no message is replaced, and no call is reopened.
func TestContextEventsKeepTheirNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opened := map[string]bool{}
		events := slices.DeleteFunc(drawRaw(t), func(e tapedeck.Event) bool {
			switch e.Type {
			case tapedeck.MessagesSnapshot, tapedeck.MessageAdded:
				return true
			case tapedeck.ToolCallStart:
				key := e.Thread + e.Invocation + string(e.Data)
				again := opened[key]
				opened[key] = true
				return again
			}
			return e.Channel == tapedeck.ChannelSession
		})
		var before []view.ContextEvent
		for n := range events {
			now := view.ContextEvents(fold(events[:n]).Snapshot(), view.InThread(""))
			for i := range now {
				if now[i].Sequence != i || i > 0 && now[i].Offset < now[i-1].Offset {
					t.Fatalf("number %d is %+v", i, now[i])
				}
			}
			for i, was := range before {
				is := now[i]
				if is.Type != was.Type || is.Offset != was.Offset || is.CallID() != was.CallID() {
					t.Fatalf("after event %d, number %d became %+v, and was %+v", n, i, is, was)
				}
			}
			before = now
		}
	})
}

func TestInstancesContinueFromACheckpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawRaw(t)
		want := mustJSON(t, instances(events).Instances("ses"))
		f := new(view.InstanceFold)
		for i := range events {
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				f = checkpoint(t, *f)
				f.Apply(&events[max(i-1, 0)])
			}
			f.Apply(&events[i])
		}
		if got := mustJSON(t, f.Instances("ses")); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

// TestInstancesShareEverything: every message, call and run belongs to exactly
// one instance.
func TestInstancesShareEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := slices.DeleteFunc(drawRaw(t), func(e tapedeck.Event) bool { return e.Channel == tapedeck.ChannelSession })
		all := instances(events).Instances("ses")
		seen := map[string]bool{}
		for _, i := range all {
			if seen[i.ID] || i.ID == "" {
				t.Fatalf("the id %q twice", i.ID)
			}
			seen[i.ID] = true
		}
		for _, r := range fold(events).Snapshot().Runs {
			n := 0
			for _, i := range all {
				if i.Has(&r.Item) {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("the run %s of %q in %s has %d instances of %+v", r.Invocation, r.Instance, r.Thread, n, all)
			}
		}
	})
}

func TestImplicitInstance(t *testing.T) {
	events := readFixture(t, "testdata/tools.json").events(t)
	all := instances(events).Instances("ses")
	id := view.InstanceID("ses", "")
	if i, ok := all.Find(id); !ok || i.Thread != tapedeck.MainThread || !i.Implicit || tapedeck.CheckID("it", id) != nil {
		t.Errorf("got %+v of %+v", i, all)
	}
	events = append(events, tapedeck.Event{
		Offset: int64(len(events)), Type: tapedeck.InstanceStarted, Channel: tapedeck.ChannelAgentState, Data: json.RawMessage(`{"id":"ins_new"}`),
	})
	if i, ok := instances(events).Instances("ses").Find(id); !ok || i.ID != "ins_new" || i.Implicit {
		t.Errorf("after it got a name, the id finds %+v", i)
	}
}
