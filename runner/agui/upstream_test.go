package agui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/agui"
)

// An upstream is an agent of AG-UI. It does what the last line of the newest message
// says.
type upstream struct {
	*agui.Runner
	mu     sync.Mutex
	inputs []inputs
	did    bool // what it had asked for
}

// An inputs is what the agent was sent.
type inputs struct {
	payload.RunInput
	Resume []struct {
		InterruptID string          `json:"interruptId"`
		Status      string          `json:"status"`
		Payload     json.RawMessage `json:"payload"`
	} `json:"resume"`
}

// newUpstream returns an agent, in this process.
func newUpstream() *upstream {
	u := new(upstream)
	u.Runner = runnerOf(u)
	return u
}

func runnerOf(h http.Handler) *agui.Runner {
	return agui.New(agui.Options{
		Name: "up", URL: "http://agent.invalid/run?key=hidden", Header: map[string]string{"Authorization": "Bearer secret"},
		Retry: time.Millisecond, MaxEvent: 1 << 20, HTTP: testmodel.Transport(h),
	})
}

func (u *upstream) input(i int) inputs {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.inputs[i]
}

func (u *upstream) hasDone() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.did
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in inputs
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	u.mu.Lock()
	u.inputs = append(u.inputs, in)
	u.mu.Unlock()
	s := &sender{w: w, in: &in}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.send(`{"type":"RUN_STARTED","threadId":%q,"runId":%q}`, in.ThreadID, in.RunID)
	words := ""
	for _, m := range in.Messages {
		if m.Role == payload.RoleUser {
			words = m.Text()
		}
	}
	u.obey(r.Context(), s, words[strings.LastIndex(words, "\n")+1:])
}

// A sender sends the events of a run.
type sender struct {
	w  http.ResponseWriter
	in *inputs
	n  int
}

func (s *sender) send(format string, args ...any) {
	_, _ = fmt.Fprintf(s.w, "data: "+format+"\n\n", args...)
	s.w.(http.Flusher).Flush()
}

// id returns a new id.
func (s *sender) id() string { s.n++; return fmt.Sprintf("%s-%d", s.in.RunID, s.n) }

func (s *sender) say(words ...string) {
	id := s.id()
	s.send(`{"type":"TEXT_MESSAGE_START","messageId":%q,"role":"assistant"}`, id)
	for _, w := range words {
		s.send(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":%q}`, id, w)
	}
	s.send(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, id)
}

func (s *sender) finish(more string) {
	s.send(`{"type":"RUN_FINISHED","threadId":%q,"runId":%q%s}`, s.in.ThreadID, s.in.RunID, more)
}

func (u *upstream) obey(ctx context.Context, s *sender, line string) {
	switch line {
	case "talk":
		s.say("One ", "two ", "three")
	case "chunks":
		id := s.id()
		s.send(`{"type":"THINKING_START"}`)
		s.send(`{"type":"THINKING_TEXT_MESSAGE_START"}`)
		s.send(`{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"hm"}`)
		s.send(`{"type":"THINKING_TEXT_MESSAGE_END"}`)
		s.send(`{"type":"THINKING_END"}`)
		s.send(`{"type":"TEXT_MESSAGE_CHUNK","messageId":%q,"delta":"One ","name":null}`, id)
		s.send(`{"type":"TEXT_MESSAGE_CHUNK","delta":"two "}`)
		s.send(`{"type":"TEXT_MESSAGE_CHUNK","delta":"three"}`)
	case "endless":
		id := s.id()
		s.send(`{"type":"TEXT_MESSAGE_START","messageId":%q}`, id)
		for ctx.Err() == nil {
			s.send(`{"type":"TEXT_MESSAGE_CONTENT","messageId":%q,"delta":"on "}`, id)
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
		}
		return
	case "fail":
		s.send(`{"type":"RUN_ERROR","message":"the disk is full","code":"E_DISK"}`)
		return
	case "tool":
		u.call(s, s.id(), true)
		s.say("done")
	case "plan":
		s.send(`{"type":"TOOL_CALL_CHUNK","toolCallId":%q,"toolCallName":"write_todos","delta":"{\"todos\":[{\"content\":\"Look\","}`, s.id())
		s.send(`{"type":"TOOL_CALL_CHUNK","delta":"\"status\":\"in_progress\"}]}"}`)
	case "subagent":
		s.send(`{"type":"SUBAGENT_STARTED","subagentRunId":"s1","name":"scout"}`)
		s.send(`{"type":"TEXT_MESSAGE_START","messageId":"%s","subagentRunId":"s1"}`, s.id())
		s.send(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"%s-1","delta":"I look"}`, s.in.RunID)
		s.send(`{"type":"TEXT_MESSAGE_END","messageId":"%s-1"}`, s.in.RunID)
		s.send(`{"type":"SUBAGENT_FINISHED","subagentRunId":"s1"}`)
	case "ask":
		if u.ask(s) {
			return
		}
	default:
		s.say("You said " + line)
	}
	s.finish(`,"usage":[{"model":"m","inputTokens":3,"outputTokens":5}]`)
}

func (u *upstream) call(s *sender, id string, answered bool) {
	s.send(`{"type":"TOOL_CALL_START","toolCallId":%q,"toolCallName":"Read"}`, id)
	s.send(`{"type":"TOOL_CALL_ARGS","toolCallId":%q,"delta":"{\"command\":\"rm -r"}`, id)
	s.send(`{"type":"TOOL_CALL_ARGS","toolCallId":%q,"delta":" /tmp/x\"}"}`, id)
	s.send(`{"type":"TOOL_CALL_END","toolCallId":%q}`, id)
	if answered {
		s.send(`{"type":"TOOL_CALL_RESULT","messageId":"r-%s","toolCallId":%q,"content":"hello"}`, id, id)
	}
}

// ask asks before a call, and reports true; with the answer it does what it may do.
func (u *upstream) ask(s *sender) bool {
	if s.in.Resume == nil {
		id := s.id()
		u.call(s, id, false)
		s.finish(fmt.Sprintf(`,"outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"tool_call","message":"May I?","toolCallId":%q}]}`, id))
		return true
	}
	a := s.in.Resume[0]
	if a.InterruptID == "i1" && a.Status == "resolved" && string(a.Payload) == `{"approved":true}` {
		u.mu.Lock()
		u.did = true
		u.mu.Unlock()
	}
	s.say("answered")
	return false
}

// run runs an invocation and returns its text, its events and its error.
func run(t testing.TB, r tapedeck.Runner, in tapedeck.Invocation) (string, []tapedeck.Event, error) {
	t.Helper()
	if in.ID == "" {
		in.ID = tapedeck.NewID("inv_")
	}
	in.Session, in.Thread = "s", tapedeck.MainThread
	var text strings.Builder
	var events []tapedeck.Event
	for e, err := range r.Run(t.Context(), in) {
		if err != nil {
			return text.String(), events, err
		}
		if e.Type == tapedeck.TextMessageContent {
			text.WriteString(decode[payload.TextMessageContent](t, e).Delta.Whole())
		}
		events = append(events, e)
	}
	return text.String(), events, nil
}

func decode[T payload.Payload](t testing.TB, e tapedeck.Event) T {
	t.Helper()
	d, err := payload.DecodeAs[T](e)
	if err != nil {
		t.Fatalf("%s %s: %v", e.Type, e.Data, err)
	}
	return d
}

// linkOf returns the newest link.
func linkOf(t testing.TB, events []tapedeck.Event) *tapedeck.Link {
	t.Helper()
	var l *tapedeck.Link
	for _, e := range events {
		if e.Type == tapedeck.AgentLinked {
			d := decode[payload.AgentLinked](t, e)
			l = &tapedeck.Link{Runner: d.Runner, NativeID: d.NativeID}
		}
	}
	return l
}

// A tape is the log of one thread, as the engine would write it.
type tape struct {
	events []tapedeck.Event
	runs   int
}

// history returns the events as the history of the next invocation.
func (l *tape) history(context.Context) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for _, e := range l.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// next runs a task after those before it, and records it with an end.
func (l *tape) next(t testing.TB, r tapedeck.Runner, in tapedeck.Invocation, end payload.Payload) (string, []tapedeck.Event) {
	t.Helper()
	l.runs++
	in.ID, in.History, in.Link = fmt.Sprintf("inv_%d", l.runs), l.history, linkOf(t, l.events)
	m := payload.NewMessage(fmt.Sprintf("u%d", l.runs), payload.RoleUser, in.Task)
	if in.Message == nil {
		in.Message, _ = json.Marshal(m)
	}
	text, events, err := run(t, r, in)
	if err != nil && end == nil {
		t.Fatal(err)
	}
	if end == nil {
		end = payload.RunFinished{ThreadID: "t", RunID: in.ID}
	}
	begin := []tapedeck.Event{{Type: tapedeck.MessageAdded, Data: json.RawMessage(`{"message":` + string(in.Message) + `}`)}, payload.NewEvent(payload.RunStarted{ThreadID: "t", RunID: in.ID})}
	for _, e := range append(append(begin, events...), payload.NewEvent(end)) {
		e.Offset, e.Channel, e.Invocation, e.Thread = int64(len(l.events)), tapedeck.ChannelOf(e.Type), in.ID, tapedeck.MainThread
		l.events = append(l.events, e)
	}
	return text, events
}

// outlineOf returns the messages of an input.
func outlineOf(in inputs) string {
	var list []string
	for _, m := range in.Messages {
		s := m.Role + "=" + m.Text()
		for _, k := range m.ToolCalls {
			s += " calls " + k.Function.Name + k.Function.Arguments
		}
		list = append(list, s)
	}
	return strings.Join(list, " | ")
}
