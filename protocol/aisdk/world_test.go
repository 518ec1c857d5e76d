package aisdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/apitest"
)

// A world is a whole server in memory. Its agents are functions.
type world struct {
	testing.TB
	*deck.Deck
	handler http.Handler
	proceed chan struct{} // the agent "steps" waits for it where its task says so
	inputs  []tapedeck.Invocation
	runs    runNames
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, proceed: make(chan struct{})}
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, NoScreen: true, AnyHost: true, Version: "test", Agents: []deck.Agent{
		{Name: "steps", Description: "sends what its task says", Runner: tapedeck.RunnerFunc(w.steps)},
		{Name: "asker", Runner: tapedeck.RunnerFunc(w.asks)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.WithoutCancel(t.Context())) })
	w.Deck, w.handler = d, d.Handler()
	return w
}

// steps sends the events that the task has, one a line. A line "wait" waits for the
// test, and "fail" fails.
func (w *world) steps(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	w.inputs = append(w.inputs, in)
	return func(yield func(tapedeck.Event, error) bool) {
		for line := range strings.Lines(in.Task) {
			typ, data, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch typ {
			case "wait":
				select {
				case <-w.proceed:
				case <-ctx.Done():
					return
				}
				continue
			case "fail":
				yield(tapedeck.Event{}, tapedeck.Errorf(tapedeck.Unavailable, "the model is away"))
				return
			}
			if !strings.HasPrefix(data, "{") {
				continue
			}
			e := tapedeck.Event{Type: typ, Data: json.RawMessage(data)}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// asks asks as many questions as the task has words, all at once, in the middle of a
// call and a step. After the answers it waits for the test.
func (w *world) asks(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for _, line := range []string{`STEP_STARTED {"stepName":"s"}`, `TOOL_CALL_START {"toolCallId":"c","toolCallName":"rm"}`, `TOOL_CALL_ARGS {"toolCallId":"c","delta":"{"}`} {
			typ, data, _ := strings.Cut(line, " ")
			if !yield(tapedeck.Event{Type: typ, Data: json.RawMessage(data)}, nil) {
				return
			}
		}
		ids := strings.Fields(in.Task)
		answers := make(chan string)
		for _, id := range ids {
			go func() {
				q := tapedeck.Question{ID: id, ToolCallID: "c", Message: "May I?", Options: []tapedeck.PermissionOption{
					{ID: "yes", Kind: "allow_once"}, {ID: "always", Kind: "allow_always"}, {ID: "no", Kind: "reject_once"},
				}}
				c, err := in.Ask(ctx, q)
				answers <- fmt.Sprint(id, "=", c.Option, err)
			}()
		}
		got := map[string]bool{}
		for range ids {
			got[<-answers] = true
		}
		select { // so that it is certain what a client gets at once, and what later
		case <-w.proceed:
		case <-ctx.Done():
			return
		}
		text, _ := json.Marshal(strings.Join(slices.Sorted(maps.Keys(got)), " "))
		for _, line := range []string{`TOOL_CALL_ARGS {"toolCallId":"c","delta":"}"}`, `TOOL_CALL_END {"toolCallId":"c"}`, `TOOL_CALL_RESULT {"messageId":"r","toolCallId":"c","content":` + string(text) + `}`, `STEP_FINISHED {"stepName":"s"}`} {
			typ, data, _ := strings.Cut(line, " ")
			if !yield(tapedeck.Event{Type: typ, Data: json.RawMessage(data)}, nil) {
				return
			}
		}
	}
}

// A reader is a client of one stream.
type reader struct {
	apitest.Client
	w *world
}

// open sends a request in the background.
func (w *world) open(path, body string) *reader {
	w.Helper()
	r := &reader{w: w}
	req := httptest.NewRequestWithContext(w.Context(), http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	r.Send(w.handler, req)
	return r
}

// run sends a request and returns the client when the stream has ended.
func (w *world) run(path, body string) *reader {
	w.Helper()
	r := w.open(path, body)
	<-r.Done
	return r
}

// request returns the body of a request with one new message of the user.
func request(chat, id, text string) string {
	b, _ := json.Marshal(map[string]any{
		"id": chat, "trigger": "submit-message",
		"messages": []map[string]any{{"id": id, "role": "user", "parts": []map[string]string{{"type": "text", "text": text}}}},
	})
	return string(b)
}

// said is a task that sends one message.
func said(id, text string) string {
	i, _ := json.Marshal(id)
	t, _ := json.Marshal(text)
	return fmt.Sprintf("TEXT_MESSAGE_START {\"messageId\":%[1]s}\nTEXT_MESSAGE_CONTENT {\"messageId\":%[1]s,\"delta\":%[2]s}\nTEXT_MESSAGE_END {\"messageId\":%[1]s}", i, t)
}
