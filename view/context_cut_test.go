package view_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// contextOf returns the context of the main thread, an event a line.
func contextOf(c *view.Conversation) (events []view.ContextEvent, lines []string) {
	events = view.ContextEvents(c.Snapshot(), view.InThread(""))
	for _, e := range events {
		lines = append(lines, e.Type+" "+string(e.Content))
	}
	return events, lines
}

// TestCutContext cuts a log after each event of a context, forks it there, and compares what
// is left, also after a checkpoint. The model gets a well-formed conversation.
func TestCutContext(t *testing.T) {
	lines := strings.Split(`message.added {"message":{"id":"u1","role":"user","content":"go"}}
TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"I look."}
TEXT_MESSAGE_END {"messageId":"m1"}
TOOL_CALL_START {"toolCallId":"c1","toolCallName":"Read","parentMessageId":"m1"}
TOOL_CALL_ARGS {"toolCallId":"c1","delta":"{}"}
TOOL_CALL_END {"toolCallId":"c1"}
TOOL_CALL_START {"toolCallId":"c2","toolCallName":"Read","parentMessageId":"m1"}
TOOL_CALL_ARGS {"toolCallId":"c2","delta":"{\"a\":1}"}
TOOL_CALL_END {"toolCallId":"c2"}
TOOL_CALL_RESULT {"toolCallId":"c2","messageId":"r2","content":"two"}
TOOL_CALL_RESULT {"toolCallId":"c1","messageId":"r1","content":"one"}
message.added {"message":{"id":"m2","role":"assistant","content":"","toolCalls":[{"id":"c3","type":"function","function":{"name":"Edit","arguments":"{}"}},{"id":"c4","type":"function","function":{"name":"Edit","arguments":"{}"}}]}}
message.added {"message":{"id":"r3","role":"tool","toolCallId":"c3","content":"three"}}
TOOL_CALL_START {"toolCallId":"c5","toolCallName":"Ask"}
TOOL_CALL_ARGS {"toolCallId":"c5","delta":"{}"}
TOOL_CALL_RESULT {"toolCallId":"c5","messageId":"r5","content":"five"}
message.added {"message":{"id":"m3","role":"assistant","content":"","toolCalls":[{"id":"c6","type":"function","function":{"name":"Edit","arguments":"{}"}}]}}`, "\n")
	var log []tapedeck.Event
	for n, line := range lines {
		typ, data, _ := strings.Cut(line, " ")
		log = append(log, tapedeck.Event{Offset: int64(n), Type: typ, Channel: tapedeck.ChannelChunks, Invocation: "i1", Data: json.RawMessage(data)})
	}
	whole := new(view.Conversation)
	for n := range log {
		whole.Apply(&log[n])
	}
	events, want := contextOf(whole)
	if len(events) != 15 {
		t.Fatalf("the context has %d events:\n%s", len(events), strings.Join(want, "\n"))
	}
	for n := range events {
		first, uncalled := view.CutContext(events, n)
		if first < 0 {
			first = int64(len(log))
		}
		cut := new(view.Conversation)
		for k := range log[:first] {
			cut.Apply(&log[k])
		}
		data, _ := json.Marshal(map[string]any{"parent": "s", "at": first, "context": view.ContextCut{Uncalled: uncalled}})
		cut.Apply(&tapedeck.Event{Offset: first, Type: tapedeck.SessionForked, Channel: tapedeck.ChannelSession, Data: data})
		var restored view.Conversation
		saved, err := json.Marshal(cut)
		if err == nil {
			err = json.Unmarshal(saved, &restored)
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]*view.Conversation{"cut": cut, "restored": &restored} {
			if _, got := contextOf(c); !reflect.DeepEqual(got, want[:n+1]) {
				t.Errorf("after %d, at %d, without %v, %s:\n%s\nwant\n%s", n, first, uncalled, name, strings.Join(got, "\n"), strings.Join(want[:n+1], "\n"))
			}
			if why := wellFormed(view.Context(c.Snapshot(), view.InThread(""))); why != "" {
				t.Errorf("after %d: %s", n, why)
			}
		}
	}
}

// An id that Tapedeck makes is a UUID, and says in which session it may be.
func TestMayBeIn(t *testing.T) {
	for _, id := range []string{view.NewInstanceID("s"), view.InstanceID("s", "t"), view.AgentInstance("s", "coder", "")} {
		var parts [5]uint64
		if n, err := fmt.Sscanf(id, "%8x-%4x-%4x-%4x-%12x", &parts[0], &parts[1], &parts[2], &parts[3], &parts[4]); n != 5 || err != nil || len(id) != 36 || parts[2]>>12 != 8 || parts[3]>>14 != 2 {
			t.Errorf("%s is no UUID", id)
		}
		if !view.MayBeIn("s", id) || view.MayBeIn("t", id) {
			t.Errorf("%s is in another session", id)
		}
	}
	if first, second := view.NewInstanceID("s"), view.NewInstanceID("s"); view.MayBeIn("s", "ins_1") || first == second {
		t.Error("an id of a program is in a session, or a new id is not new")
	}
}

// An agent has its name, and so its id in a copy, also if no run of it is left.
func TestAgentIsNamedBeforeItsRun(t *testing.T) {
	f := instances([]tapedeck.Event{
		{Offset: 1, Type: tapedeck.MessageAdded, Channel: tapedeck.ChannelChunks, Instance: view.AgentInstance("p", "bot", ""), Actor: "agent:bot"},
		{Offset: 2, Type: tapedeck.SessionForked, Channel: tapedeck.ChannelSession, Data: json.RawMessage(`{"session":"c","parent":"p","at":2,"copy":true}`)},
		{Offset: 3, Type: tapedeck.RunStarted, Channel: tapedeck.ChannelChunks, Instance: view.AgentInstance("c", "bot", ""), Actor: "agent:bot"},
	})
	if all := f.Instances("c"); len(all) != 1 || all[0].ID != view.AgentInstance("c", "bot", "") || all[0].Name != "bot" {
		t.Errorf("the instances are %+v", all)
	}
}
