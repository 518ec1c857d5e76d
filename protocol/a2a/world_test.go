package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/a2a"
	"github.com/tapedeck/tapedeck/protocol/a2a/push"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A world has a handler over an engine with the agents "bot" and "other", which both do
// what their task says, see [obey].
type world struct {
	*testing.T
	hub      *hub.Hub
	store    *memory.Store
	engine   *engine.Engine
	views    *projection.Projections
	receiver *receiver // of push notifications
	folder   string    // the data folder
	end      func()    // ends the handler
	http.Handler
}

// inBubble runs a test with a world in a bubble.
func inBubble(t *testing.T, o a2a.Options, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		w := &world{T: t, hub: hub.New(m), store: m, receiver: new(receiver), folder: t.TempDir(), end: func() {}}
		w.start(o)
		defer w.stop()
		test(w)
	})
}

// start starts an engine and a handler on the log.
func (w *world) start(o a2a.Options) {
	w.views = projection.New(projection.Options{Store: w.hub})
	w.hub.Observe(w.views.Observer())
	var agents []engine.Agent
	for _, name := range []string{"bot", "other", "ns.bot"} {
		agents = append(agents, engine.Agent{Agent: tapedeck.Agent{Name: name, Kind: "go"}, Runner: tapedeck.RunnerFunc(obey)})
	}
	w.engine = engine.New(engine.Options{Store: w.hub, Views: w.views, Agents: agents})
	o.Sessions, o.Verbs, o.Views = w.hub, w.engine, w.views
	w.end()
	o.Push = &push.Options{Store: w.store.PushConfigs(), Sessions: w.hub, Folder: w.folder, Transport: w.receiver}
	h := a2a.New(o)
	w.Handler = h
	w.hub.Observe(h.Observer())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { h.Run(ctx); close(ended) }()
	w.end = func() { cancel(); <-ended }
}

func (w *world) stop() {
	_ = w.engine.Shutdown(context.Background())
	w.end()
}

// obey is an agent that carries out the commands of its task, one a line.
func obey(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for i, line := range strings.Split(in.Task, "\n") {
			verb, rest, _ := strings.Cut(line, " ")
			id := fmt.Sprintf("%s%d", verb, i)
			var out []payload.Payload
			switch verb {
			case "say":
				out = append(out, payload.TextMessageStart{MessageID: id})
				for word := range strings.SplitAfterSeq(rest, " ") {
					out = append(out, payload.TextMessageContent{MessageID: id, Delta: payload.Piece(word)})
				}
				out = append(out, payload.TextMessageEnd{MessageID: id})
			case "tool":
				out = append(out, payload.ToolCallStart{ToolCallID: id, ToolCallName: rest}, payload.ToolCallArgs{ToolCallID: id, Delta: `{"a":1}`},
					payload.ToolCallEnd{ToolCallID: id}, payload.ToolCallResult{MessageID: id + "r", ToolCallID: id, Content: json.RawMessage(`"done"`)})
			case "again":
				out = append(out, payload.Unknown{Type: tapedeck.AttemptSuperseded, Data: json.RawMessage(`{}`)})
			case "sleep":
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			case "wait":
				<-ctx.Done()
			case "ask":
				options := []tapedeck.PermissionOption{{ID: "yes", Name: "Yes", Kind: "allow_once"}, {ID: "no", Name: "No", Kind: "reject_once"}}
				choice, err := in.Ask(ctx, tapedeck.Question{ID: "q1", Message: rest, Options: options})
				if err != nil {
					yield(tapedeck.Event{}, err)
					return
				}
				out = append(out, payload.TextMessageStart{MessageID: id}, payload.TextMessageContent{MessageID: id, Delta: payload.Piece("You chose " + choice.Option)},
					payload.TextMessageEnd{MessageID: id})
			case "ask2": // two questions at once, q1 first
				ask := func(id string) string {
					options := []tapedeck.PermissionOption{{ID: "yes", Name: "Yes", Kind: "allow_once"}, {ID: "no", Name: "No", Kind: "reject_once"}}
					choice, _ := in.Ask(ctx, tapedeck.Question{ID: id, Message: "May I " + id + "?", Options: options}) // a test that fails shows it
					return choice.Option
				}
				first := make(chan string)
				go func() { first <- ask("q1") }()
				time.Sleep(time.Millisecond)
				second := ask("q2")
				out = append(out, payload.TextMessageStart{MessageID: id}, payload.TextMessageContent{MessageID: id, Delta: payload.Piece("You chose " + <-first + " and " + second)},
					payload.TextMessageEnd{MessageID: id})
			case "fail":
				yield(tapedeck.Event{}, tapedeck.Errorf(tapedeck.Unavailable, "%s", rest))
				return
			}
			for _, p := range out {
				time.Sleep(time.Millisecond) // in the bubble: so that deltas are not joined
				if !yield(payload.NewEvent(p), nil) {
					return
				}
			}
		}
	}
}

// An answer is what a request got: one result or error, or the frames of a stream.
type answer struct {
	*testing.T
	Status int
	Header http.Header
	Body   string
	frames []sse.Frame
}

// post sends a body to a path. headers are names and values by turns.
func (w *world) post(path, body string, headers ...string) *answer {
	w.Helper()
	return w.do(http.MethodPost, path, body, headers...)
}

func (w *world) do(method, path, body string, headers ...string) *answer {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(body))
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	a := &answer{T: w.T, Status: rec.Code, Header: rec.Header(), Body: rec.Body.String()}
	if strings.HasPrefix(rec.Header().Get("Content-Type"), "text/event-stream") {
		for f, err := range sse.Read(strings.NewReader(a.Body)) {
			if err != nil {
				w.Fatal(err)
			}
			a.frames = append(a.frames, f)
		}
	}
	return a
}

// call calls a method of version 1.0.
func (w *world) call(method, params string, headers ...string) *answer {
	w.Helper()
	return w.post("/a2a/bot", fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params), append(headers, "A2A-Version", "1.0")...)
}

// call03 calls a method of version 0.3.
func (w *world) call03(method, params string, headers ...string) *answer {
	w.Helper()
	return w.post("/a2a/bot", fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":%q,"params":%s}`, method, params), headers...)
}

// message returns the parameters of a message in context c. more are further members of
// the message.
func message(id, text, more string) string {
	if more != "" {
		more = "," + more
	}
	b, _ := json.Marshal(text)
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","contextId":"c","parts":[{"text":%s}]%s}}`, id, b, more)
}

func message03(id, text, more string) string {
	s := strings.Replace(message(id, text, more), "ROLE_USER", "user", 1)
	return strings.Replace(s, `[{"text"`, `[{"kind":"text","text"`, 1)
}

// A task is a task of either version, with the members that tests look at.
type task struct {
	ID        string `json:"id"`
	ContextID string `json:"contextId"`
	Status    taskStatus
	History   []messageForm
	Artifacts []struct {
		ID    string `json:"artifactId"`
		Parts []partForm
	}
	Metadata map[string]any
}

type taskStatus struct {
	State   string
	Message *messageForm
}

type messageForm struct {
	ID       string `json:"messageId"`
	Role     string
	TaskID   string `json:"taskId"`
	Parts    []partForm
	Metadata map[string]any
}

type partForm struct {
	Kind, Text string
	Data       map[string]any
}

// words returns the texts of the history, each with its author.
func (t *task) words() string {
	var out []string
	for _, m := range t.History {
		role := strings.ToLower(strings.TrimPrefix(m.Role, "ROLE_"))
		for _, p := range m.Parts {
			switch {
			case p.Text != "":
				out = append(out, role+": "+p.Text)
			case p.Data != nil:
				out = append(out, fmt.Sprintf("%s: %v", role, p.Data["name"]))
			}
		}
	}
	return strings.Join(out, " | ")
}

// task returns the task of an answer, which may be a stream that consists of it and of its
// status.
func (a *answer) task() *task {
	a.Helper()
	if len(a.frames) == 0 {
		return a.taskIn(a.Body)
	}
	t := a.taskIn(string(a.frames[0].Data))
	if len(a.frames) != 2 {
		a.Fatalf("the stream has %d events, want two: %s", len(a.frames), a.Body)
	}
	var last struct {
		Result struct {
			status
			Update struct{ status } `json:"statusUpdate"` // version 1.0
		}
	}
	if err := json.Unmarshal(a.frames[1].Data, &last); err != nil {
		a.Fatal(err)
	}
	s := last.Result.status
	if s.Kind == "" {
		s = last.Result.Update.status
	}
	if s.TaskID != t.ID || s.ContextID != t.ContextID || !reflect.DeepEqual(s.Status, t.Status) || s.Kind != "" && (s.Kind != "status-update" || !s.Final) {
		a.Errorf("the task in state %+v ends with the status %s", t.Status, a.frames[1].Data)
	}
	return t
}

// A status is an update of version 0.3, or what it has in version 1.0.
type status struct {
	Kind, TaskID, ContextID string
	Final                   bool
	Status                  taskStatus
}

func (a *answer) taskIn(body string) *task {
	a.Helper()
	var env struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(body), &env); err != nil || env.Result == nil {
		a.Fatalf("no result in %d %s", a.Status, body)
	}
	var wrapped struct{ Task json.RawMessage }
	if _ = json.Unmarshal(env.Result, &wrapped); wrapped.Task != nil {
		env.Result = wrapped.Task
	}
	t := new(task)
	if err := json.Unmarshal(env.Result, t); err != nil || t.ID == "" {
		a.Fatalf("no task in %s", body)
	}
	return t
}

// tasks returns the tasks of an answer with a list.
func (a *answer) tasks() (out []string) {
	a.Helper()
	var env struct {
		Result struct{ Tasks []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(a.Body), &env); err != nil || env.Result.Tasks == nil {
		a.Fatalf("no list in %s", a.Body)
	}
	for _, t := range env.Result.Tasks {
		out = append(out, string(t))
	}
	return out
}

// fails checks the code and a part of the message of an error.
func (a *answer) fails(code int, want string) {
	a.Helper()
	var env struct {
		Error struct {
			Code    int
			Message string
		}
	}
	body := []byte(a.Body)
	if len(a.frames) == 1 { // of version 0.3
		body = a.frames[0].Data
	}
	if err := json.Unmarshal(body, &env); err != nil || env.Error.Code != code || !strings.Contains(env.Error.Message, want) {
		a.Errorf("got %d %s, want the error %d with %q", a.Status, a.Body, code, want)
	}
}

// create creates session c.
func (w *world) create() {
	w.Helper()
	if _, err := w.engine.Create(w.Context(), api.NewSession{ID: "c"}); err != nil {
		w.Fatal(err)
	}
}

// log returns the types of the events of session c.
func (w *world) log() []string {
	w.Helper()
	var out []string
	for e, err := range tapedeck.Events(w.Context(), w.hub, "c", 0) {
		if err != nil {
			w.Fatal(err)
		}
		out = append(out, e.Type)
	}
	return out
}
