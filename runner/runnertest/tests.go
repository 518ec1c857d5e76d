package runnertest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
)

// inOrder gives a whole run to the verifier, as the engine does, and ends the run. So the
// runner must have ended everything that it began.
func inOrder(t *testing.T, h Harness) {
	in := invocation(h.Talk, "inv_1")
	events, err := h.collect(t, t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) < 3 {
		t.Fatalf("Talk yielded %d events; the suite needs at least 3", len(events))
	}
	verify(t, in, events)
	h.compare(t, events)
}

// verify checks the order of events between the start and the end of a run.
func verify(t *testing.T, in tapedeck.Invocation, events []tapedeck.Event) {
	t.Helper()
	run, err := json.Marshal(map[string]string{"threadId": in.Thread, "runId": in.ID})
	if err != nil {
		t.Fatal(err)
	}
	v := order.NewVerifier()
	add := func(e tapedeck.Event) {
		t.Helper()
		e.Invocation, e.Thread = in.ID, in.Thread
		if err := v.Add(&e); err != nil {
			t.Fatalf("%s %s: %v", e.Type, e.Data, err)
		}
	}
	add(tapedeck.Event{Type: "RUN_STARTED", Data: run})
	for _, e := range events {
		add(e)
	}
	add(tapedeck.Event{Type: "RUN_FINISHED", Data: run})
}

// compare compares the text of the messages with the expected text.
func (h *Harness) compare(t *testing.T, events []tapedeck.Event) {
	t.Helper()
	if h.Text == "" {
		return
	}
	var said strings.Builder
	for _, e := range events {
		if e.Type == "TEXT_MESSAGE_CONTENT" {
			said.WriteString(string(read(t, e).Delta))
		}
	}
	if got := payload.Whole(said.String()); got != h.Text {
		t.Errorf("it said %q, want %q", got, h.Text)
	}
}

type content struct {
	MessageID, ToolCallID string
	Delta                 payload.Piece
}

func read(t *testing.T, e tapedeck.Event) content {
	t.Helper()
	var c content
	if err := json.Unmarshal(e.Data, &c); err != nil {
		t.Fatalf("%s %s: %v", e.Type, e.Data, err)
	}
	return c
}

func unstamped(t *testing.T, h Harness) {
	events, err := h.collect(t, t.Context(), invocation(h.Talk, "inv_1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := e.Check(); err != nil {
			t.Errorf("%s: %v", e.Type, err)
		}
		if e.Offset != 0 || e.Thread != "" || e.Invocation != "" || !e.Time.IsZero() {
			t.Errorf("%s: only the engine sets offset, thread, invocation and time: %+v", e.Type, e)
		}
		switch {
		case strings.HasPrefix(e.Type, "RUN_"), strings.HasPrefix(e.Type, "session."):
			t.Errorf("only the engine writes %s", e.Type)
		}
	}
}

func cancelled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	h.within(t, func() {
		for _, err := range h.Runner.Run(ctx, invocation(h.Endless, "inv_1")) {
			if n++; n == 3 {
				cancel()
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("it was cancelled and failed: %v", err)
			}
		}
	})
	if n < 3 {
		t.Fatalf("Endless ended by itself after %d events", n)
	}
}

func cancelledBefore(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.collect(t, ctx, invocation(h.Endless, "inv_1"))
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("it was cancelled and failed: %v", err)
	}
}

func slowReader(t *testing.T, h Harness) {
	lag := time.Millisecond
	if h.Bubble {
		lag = time.Minute
	}
	in := invocation(h.Talk, "inv_1")
	var events []tapedeck.Event
	h.within(t, func() {
		for e, err := range h.Runner.Run(t.Context(), in) {
			if err != nil {
				t.Errorf("it failed: %v", err)
				return
			}
			events = append(events, e)
			<-time.After(lag)
		}
	})
	verify(t, in, events)
	h.compare(t, events)
}

func failing(t *testing.T, h Harness) {
	if h.Fail == nil {
		t.Skip("the harness has no task that fails")
	}
	_, err := h.collect(t, t.Context(), invocation(*h.Fail, "inv_1")) // collect checks that nothing follows
	if err == nil {
		t.Fatal("Fail did not fail")
	}
}

func leaving(t *testing.T, h Harness) {
	for _, in := range []tapedeck.Invocation{h.Talk, h.Endless} {
		h.within(t, func() {
			for _, err := range h.Runner.Run(t.Context(), invocation(in, "inv_1")) {
				if err != nil {
					t.Errorf("it failed: %v", err)
				}
				break
			}
		})
	}
}

func together(t *testing.T, h Harness) {
	type result struct {
		in     tapedeck.Invocation
		events []tapedeck.Event
	}
	results := make(chan result)
	for _, id := range []string{"inv_1", "inv_2"} {
		go func() {
			in := invocation(h.Talk, id)
			events, err := h.collect(t, t.Context(), in)
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
			results <- result{in, events}
		}()
	}
	owner := map[string]string{} // the invocation of each message id and tool call id
	for range 2 {
		r := <-results
		verify(t, r.in, r.events)
		h.compare(t, r.events)
		for _, e := range r.events {
			for _, id := range []string{read(t, e).MessageID, read(t, e).ToolCallID} {
				if id != "" && owner[id] != "" && owner[id] != r.in.ID {
					t.Fatalf("two invocations use the id %s", id)
				}
				owner[id] = r.in.ID
			}
		}
	}
}

func again(t *testing.T, h Harness) {
	for _, id := range []string{"inv_1", "inv_2"} {
		in := invocation(h.Talk, id)
		events, err := h.collect(t, t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, in, events)
		h.compare(t, events)
	}
}

func unusable(t *testing.T, h Harness) {
	c, ok := h.Runner.(runner.Configurable)
	if !ok {
		t.Fatal("it checks no config before a task is accepted")
	}
	for _, none := range []string{"", "{}"} {
		if err := c.CheckConfig(json.RawMessage(none)); err != nil {
			t.Errorf("the config %q: %v", none, err)
		}
	}
	bad := []string{`[]`, `[1]`, `"x"`, `1`}
	if !h.AnyConfig {
		bad = append(bad, `{"no such member":1}`, `{"MODEL":"x","SPEED":2,"BPMN":"x"}`)
	}
	for _, bad := range bad {
		if err := c.CheckConfig(json.RawMessage(bad)); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("the config %s: %v", bad, err)
		}
	}
}
