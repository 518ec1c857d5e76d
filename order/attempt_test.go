package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// say returns events of the run r in the form "TYPE data"; "side TYPE data" is an event
// of the thread side without an invocation.
func say(script ...string) (events []tapedeck.Event) {
	for _, s := range script {
		e := tapedeck.Event{Invocation: "r"}
		if rest, ok := strings.CutPrefix(s, "side "); ok {
			e.Invocation, e.Thread, s = "", "side", rest
		}
		typ, data, _ := strings.Cut(s, " ")
		e.Type, e.Data = typ, json.RawMessage(data)
		events = append(events, e)
	}
	return events
}

const (
	runStart  = `RUN_STARTED {"threadId":"main","runId":"r"}`
	textStart = `TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}`
	textMore  = `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"x"}`
	textEnd   = `TEXT_MESSAGE_END {"messageId":"m"}`
	callStart = `TOOL_CALL_START {"toolCallId":"c","toolCallName":"t"}`
	callEnd   = `TOOL_CALL_END {"toolCallId":"c"}`
	result    = `TOOL_CALL_RESULT {"messageId":"t","toolCallId":"c","content":"ok"}`
	asked     = `permission.requested {"id":"q","options":[{"id":"y"}]}`
	answered  = `permission.answered {"id":"q","outcome":"selected","option":"y"}`
	again     = `attempt.superseded {}`
	runEnd    = `RUN_FINISHED {"threadId":"main","runId":"r"}`
)

func againFrom(n int) string { return fmt.Sprintf(`attempt.superseded {"fromOffset":%d}`, n) }

// Each log begins at offset 0. want has the data of the attempts, or a part of the error
// of the last event.
func TestAttempts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script []string
		want   string
	}{
		{"everything", []string{runStart, textStart, textMore, again, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"what is open is open no more", []string{runStart, textStart, textMore, again, textMore}, "is not open"},
		{"the id is free", []string{runStart, textStart, again, textStart, textEnd, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"twice", []string{runStart, textStart, again, textStart, textMore, again, runEnd}, `{"attempt":2,"fromOffset":1} {"attempt":3,"fromOffset":3,"previous":2}`},
		{"the second reverts both", []string{runStart, textStart, again, textStart, againFrom(1), textStart, againFrom(1), runEnd}, `{"attempt":2,"fromOffset":1} {"attempt":3,"fromOffset":1,"previous":2} {"attempt":4,"fromOffset":1,"previous":4}`},
		{"a part of what was superseded", []string{runStart, textStart, textEnd, callStart, again, textStart, againFrom(3)}, "no message, call or thought is open"},
		{"nothing", []string{runStart, again, runEnd}, ``},
		{"nothing since the first", []string{runStart, textStart, again, again, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"a step after a result", []string{runStart, callStart, callEnd, result, textStart, again, runEnd}, `{"attempt":2,"fromOffset":4}`},
		{"a new step counts from one", []string{runStart, textStart, again, callStart, callEnd, result, textStart, again, runEnd}, `{"attempt":2,"fromOffset":1} {"attempt":2,"fromOffset":6,"previous":2}`},
		{"a larger step", []string{runStart, callStart, callEnd, result, textStart, againFrom(1), callStart, callEnd, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"between two messages", []string{runStart, textStart, textEnd, `TEXT_MESSAGE_START {"messageId":"n"}`, againFrom(3), runEnd}, `{"attempt":2,"fromOffset":3}`},
		{"in a step", []string{runStart, `STEP_STARTED {"stepName":"s"}`, textStart, again, `STEP_FINISHED {"stepName":"s"}`, runEnd}, `{"attempt":2,"fromOffset":2}`},
		{"with its step", []string{runStart, `STEP_STARTED {"stepName":"s"}`, textStart, againFrom(1), `STEP_STARTED {"stepName":"s"}`, `STEP_FINISHED {"stepName":"s"}`, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"out of its step", []string{runStart, `STEP_STARTED {"stepName":"s"}`, textStart, textEnd, `STEP_FINISHED {"stepName":"s"}`, againFrom(2)}, "has ended step"},
		{"with state and other types", []string{runStart, `STATE_SNAPSHOT {"snapshot":1}`, `acme.x {}`, `plan.updated {"entries":[]}`, again, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"its own members stay", []string{runStart, textStart, `attempt.superseded {"reason":"lost","x":1,"attempt":9,"previous":7}`, runEnd}, `{"attempt":2,"fromOffset":1,"reason":"lost","x":1}`},
		{"an answered question", []string{runStart, textStart, textEnd, asked, answered, again, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"a question", []string{runStart, textStart, textEnd, asked, again}, "has no answer yet"},
		{"a question from before", []string{runStart, asked, textStart, again, answered, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"in the middle of a message", []string{runStart, textStart, textMore, textMore, textEnd, againFrom(2)}, "no message, call or thought is open"},
		{"from its own offset", []string{runStart, textStart, againFrom(2)}, "no message, call or thought is open"},
		{"from later", []string{runStart, textStart, againFrom(99)}, "no message, call or thought is open"},
		{"of the beginning", []string{runStart, textStart, againFrom(0)}, "the first offset at which it can begin is 1"},
		{"below zero", []string{runStart, textStart, againFrom(-1)}, "cannot begin at offset -1"},
		{"of a user's message", []string{runStart, textStart, textEnd, `message.added {"message":{"id":"u","role":"user","content":"hi"}}`, textStart, againFrom(1)}, "the first offset at which it can begin is 4"},
		{"after a user's message", []string{runStart, textStart, textEnd, `message.added {"message":{"id":"u","role":"user","content":"hi"}}`, textStart, again, runEnd}, `{"attempt":2,"fromOffset":4}`},
		{"while a user speaks", []string{runStart, textStart, `message.added {"message":{"id":"u","role":"user","content":"hi"}}`, textMore, again}, "no message, call or thought is open"},
		{"of a tool's message", []string{runStart, textStart, textEnd, `message.added {"message":{"id":"u","role":"tool","content":"hi","toolCallId":"c"}}`, textStart, againFrom(1), runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"of nothing but a tool's message", []string{runStart, textStart, textEnd, `message.added {"message":{"id":"u","role":"tool","content":"hi","toolCallId":"c"}}`, againFrom(3), runEnd}, `{"attempt":2,"fromOffset":3}`},
		{"of another thread's message", []string{runStart, textStart, textEnd, `side message.added {"message":{"id":"u","role":"user","content":"hi"}}`, againFrom(1), runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"of a sub-agent with a thread", []string{runStart, `SUBAGENT_STARTED {"subagentRunId":"s","name":"s","metadata":{"tapedeck":{"thread":"sub_1"}}}`, `SUBAGENT_FINISHED {"subagentRunId":"s"}`, againFrom(1)}, "the first offset at which it can begin is 2"},
		{"of a sub-agent without one", []string{runStart, `SUBAGENT_STARTED {"subagentRunId":"s","name":"s"}`, again, `SUBAGENT_STARTED {"subagentRunId":"s","name":"s"}`, `SUBAGENT_FINISHED {"subagentRunId":"s"}`, runEnd}, `{"attempt":2,"fromOffset":1}`},
		{"after the end", []string{runStart, textStart, textEnd, runEnd, again}, "run r has ended"},
		{"without a run", []string{again}, "is not open on thread main"},
		{"of a thread without a run", []string{runStart, textStart, `side attempt.superseded {}`}, "thread side has no open run"},
		{"no number", []string{runStart, textStart, `attempt.superseded {"fromOffset":"1"}`}, "must be an integer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := NewVerifier()
			var seen []string
			for i, e := range say(tt.script...) {
				out, err := v.Accept([]tapedeck.Event{e})
				if err != nil {
					var why *tapedeck.Error
					if got := fmt.Sprint(err); !errors.As(err, &why) || i < len(tt.script)-1 || !strings.Contains(got+" "+why.Hint, tt.want) || tt.want == "" {
						t.Errorf("%s: %s", tt.script[i], got)
					}
					return
				}
				for _, one := range out {
					if one.Type == tapedeck.AttemptSuperseded {
						seen = append(seen, string(one.Data))
					}
				}
			}
			if got := strings.Join(seen, " "); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A run may have far more places where an attempt could begin than are remembered.
func TestAttemptsAreBounded(t *testing.T) {
	v := NewVerifier()
	script := []string{runStart}
	for range 500 {
		script = append(script, textStart, textMore, textEnd)
	}
	if _, err := v.Accept(say(script...)); err != nil {
		t.Fatal(err)
	}
	for from, ok := range map[int]bool{1: false, 1501 - 3*63: true, 1501 - 3*64: true, 1501 - 3*129: false, 1500: false} {
		if _, err := v.Clone().Accept(say(againFrom(from))); (err == nil) != ok {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

// After a restart, a verifier knows the places of attempts and the newest jump.
func TestAttemptsAfterARestart(t *testing.T) {
	v := NewVerifier()
	events, err := v.Accept(say(`x.y {}`, runStart, textStart, again, textStart, textEnd, callStart, callEnd, result, textStart, textMore))
	if err != nil {
		t.Fatal(err)
	}
	var s tapedeck.Session
	for i := range events {
		events[i].Offset = int64(i)
		s.Apply(&events[i])
	}
	s.Head = int64(len(events))
	restored, err := RestoreVerifier(t.Context(), logOf(t, events...), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{again, againFrom(2), againFrom(3), againFrom(4), againFrom(6), againFrom(9)} {
		want, wantErr := v.Clone().Accept(say(script))
		got, err := restored.Clone().Accept(say(script))
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || len(got) != len(want) || err == nil && string(got[0].Data) != string(want[0].Data) {
			t.Errorf("%s: %s, %v\nwant %s, %v", script, dataOf(got), err, dataOf(want), wantErr)
		}
	}
	out, err := restored.Accept(say(again))
	if err != nil || string(jsonobj.Member(out[0].Data, "previous")) != "3" || string(jsonobj.Member(out[0].Data, "fromOffset")) != "9" {
		t.Errorf("%s, %v", dataOf(out), err)
	}
}

func dataOf(events []tapedeck.Event) string {
	if len(events) == 0 {
		return "nothing"
	}
	return string(events[0].Data)
}
