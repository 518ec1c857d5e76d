// Package decktest is a whole server in memory for the tests of protocols. Its agents are
// functions, and its conversations are those of package apitest.
package decktest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
)

// A World is a server in memory.
type World struct {
	testing.TB
	*deck.Deck
	Handler http.Handler
	Proceed chan struct{}         // the agents wait for it where their tasks say so
	Inputs  []tapedeck.Invocation // of the agent "steps"
}

// New returns a server that closes with the test. Its agents are "steps", which sends what
// its task says, and "asker", which asks as many questions as its task has words.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{TB: t, Proceed: make(chan struct{})}
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, NoScreen: true, AnyHost: true, Version: "test", Agents: []deck.Agent{
		{Name: "steps", Description: "sends what its task says", Runner: stepper{w.steps}},
		{Name: "asker", Runner: tapedeck.RunnerFunc(w.asks)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.WithoutCancel(t.Context())) })
	w.Deck, w.Handler = d, d.Handler()
	return w
}

// A stepper refuses the config {"bad":true}.
type stepper struct{ tapedeck.RunnerFunc }

// CheckConfig implements runner.Configurable.
func (stepper) CheckConfig(config json.RawMessage) error {
	if string(config) == `{"bad":true}` {
		return tapedeck.Errorf(tapedeck.Invalid, "the config is bad")
	}
	return nil
}

// steps sends the events that the task has, one a line. A line "wait" waits for the
// test, and "fail" fails.
func (w *World) steps(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	w.Inputs = append(w.Inputs, in)
	return func(yield func(tapedeck.Event, error) bool) {
		for line := range strings.Lines(in.Task) {
			typ, data, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch typ {
			case "wait":
				select {
				case <-w.Proceed:
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
func (w *World) asks(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
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
		case <-w.Proceed:
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

// Say returns a task of the agent "steps" that sends one message.
func Say(id, text string) string {
	i, _ := json.Marshal(id)
	t, _ := json.Marshal(text)
	return fmt.Sprintf("TEXT_MESSAGE_START {\"messageId\":%[1]s}\nTEXT_MESSAGE_CONTENT {\"messageId\":%[1]s,\"delta\":%[2]s}\nTEXT_MESSAGE_END {\"messageId\":%[1]s}", i, t)
}
