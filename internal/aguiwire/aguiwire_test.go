package aguiwire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

func TestFrames(t *testing.T) {
	for name, tt := range map[string]struct {
		stream io.Reader
		want   string
	}{
		"two":             {strings.NewReader(": hi\ndata: {}\n\nid: 7\r\ndata: [\r\ndata: ]\r\n\r\n"), "{} [\n] <nil>"},
		"no line at end":  {strings.NewReader("data: {}\n\ndata: []"), "{} [] <nil>"},
		"too large":       {strings.NewReader("data: {}\n\ndata: " + strings.Repeat("x", 100)), "{} an event of the stream is too large"},
		"many short ones": {strings.NewReader("data: {}\n\n" + strings.Repeat("data: x\n", 20)), "{} an event of the stream is too large"},
		"broken":          {io.MultiReader(strings.NewReader("data: {}\n\ndata: []"), broken{}), "{} broken"},
	} {
		t.Run(name, func(t *testing.T) {
			got, failed := "", error(nil)
			for raw, err := range aguiwire.Frames(tt.stream, 32) {
				if failed = err; err == nil {
					got += string(raw) + " "
				}
			}
			if got += fmt.Sprint(failed); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestEvent(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"CUSTOM","name":"a"}`: "CUSTOM <nil>",
		`{"type":"LATER"}`:             "LATER <nil>",
		`{"type":"session.closed"}`:    `session.closed it has the type "session.closed", which is not one of AG-UI`,
		`{}`:                           ` it has the type "", which is not one of AG-UI`,
		`{"type":7}`:                   ` it has the type "", which is not one of AG-UI`,
		`[]`:                           " it is not a JSON object",
		`{"type":"CUSTOM"`:             "CUSTOM it is not a JSON object",
		``:                             " it is not a JSON object",
	} {
		e, err := aguiwire.Event("it", json.RawMessage(raw))
		if got := fmt.Sprint(e.Type, " ", err); got != want || err != nil && tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func TestNewMessages(t *testing.T) {
	list := []payload.Message{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	for known, want := range map[string]int{"": 3, "a": 2, "b": 1, "c": 0} {
		if got := aguiwire.NewMessages(list, map[string]bool{known: true}); len(got) != want {
			t.Errorf("with %q known, %d are new", known, len(got))
		}
	}
}

// A call without a message gets one, and its answer follows it. Of two messages with one id
// the older one keeps it for front ends, the newer one for the agent.
func TestMessages(t *testing.T) {
	var c view.Conversation
	for n, p := range []payload.Payload{
		payload.RunStarted{ThreadID: "t", RunID: "r1"},
		payload.TextMessageStart{MessageID: "m"}, payload.TextMessageContent{MessageID: "m", Delta: "one"}, payload.TextMessageEnd{MessageID: "m"},
		payload.RunFinished{ThreadID: "t", RunID: "r1"},
		payload.RunStarted{ThreadID: "t", RunID: "r2"},
		payload.ToolCallStart{ToolCallID: "k", ToolCallName: "Read"}, payload.ToolCallArgs{ToolCallID: "k", Delta: "{}"}, payload.ToolCallEnd{ToolCallID: "k"},
		payload.TextMessageStart{MessageID: "m"}, payload.TextMessageContent{MessageID: "m", Delta: "two"}, payload.TextMessageEnd{MessageID: "m"},
		payload.ToolCallResult{MessageID: "a", ToolCallID: "k", Content: payload.Text("done")},
	} {
		e := payload.NewEvent(p)
		e.Offset, e.Channel, e.Invocation = int64(n), tapedeck.ChannelOf(e.Type), "r1"
		if n > 4 {
			e.Invocation = "r2"
		}
		c.Apply(&e)
	}
	s := c.Snapshot()
	for want, form := range map[string]aguiwire.Form{
		"m assistant one 0; k assistant  1; a tool done 0; m@9 assistant two 0; ": {},
		"m@1 assistant one 0; k assistant  1; a tool done 0; m assistant two 0; ": {ForAgent: true},
	} {
		got := ""
		for _, m := range form.Messages(&s) {
			got += fmt.Sprintf("%s %s %s %d; ", m.ID, m.Role, m.Text(), len(m.ToolCalls))
			if m.Metadata != nil {
				t.Errorf("the metadata of %s are %s", m.ID, m.Metadata)
			}
		}
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if ids := aguiwire.Known(&s); len(ids) != 4 || !ids["m"] || !ids["m@9"] || !ids["k"] || !ids["a"] {
		t.Errorf("known are %v", ids)
	}
}

// No two messages or calls have one id, also if the agent uses the ids that others are given.
func TestNamesAreUnique(t *testing.T) {
	var s view.Snapshot
	for _, m := range []struct {
		id, run string
		offset  int64
	}{{"m@3", "a", 1}, {"m", "a", 2}, {"m", "b", 3}, {"m@3", "c", 5}, {"m@3@3", "d", 6}} {
		s.Messages = append(s.Messages, view.Message{ID: m.id, Role: payload.RoleAssistant, Item: view.Item{Offset: m.offset, Invocation: m.run}})
	}
	for _, offset := range []int64{7, 8} { // calls of one run
		s.Calls = append(s.Calls, view.ToolCall{ID: "k", Name: "Read", MessageID: "m", Item: view.Item{Offset: offset, Invocation: "b"}})
	}
	for want, form := range map[string]aguiwire.Form{
		"m@3 m m@3@3[k k@8] m@3@5 m@3@3@6 ": {},
		"m@3@1 m@2 m[k@7 k] m@3 m@3@3 ":     {ForAgent: true},
	} {
		got := ""
		for _, m := range form.Messages(&s) {
			var calls []string
			for _, k := range m.ToolCalls {
				calls = append(calls, k.ID)
			}
			if got += m.ID; calls != nil {
				got += fmt.Sprint(calls)
			}
			got += " "
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
