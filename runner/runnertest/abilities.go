package runnertest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
)

// Abilities are tasks for what not every runner can do. A test whose task is nil
// is skipped.
type Abilities struct {
	Tools *tapedeck.Invocation // calls a tool and goes on with what that gives
	Plan  *tapedeck.Invocation // says what it is going to do
	Usage *tapedeck.Invocation // reports what a call of its model has used

	Subagent *tapedeck.Invocation // starts another agent, which says something

	Ask *tapedeck.Invocation // asks whether it may do something, and ends by itself whatever the answer
	Did func() bool          // reports whether that was done, by this harness; nil if nobody can tell

	Resume    *tapedeck.Invocation // goes on with the conversation that Talk has begun
	Remembers string               // what Resume says only if it knows of Talk; "" to leave it open
}

var abilityTests = []suiteTest{
	{"its tool calls are whole", tools},
	{"its plan is seen", plan},
	{"what its model uses is reported", usage},
	{"what its sub-agents say is theirs", subagents},
	{"it does what is allowed", allowed},
	{"it does not do what is denied", denied},
	{"it does nothing that needs asking if nobody can be asked", unasked},
	{"it does not wait for an answer when it is cancelled", cancelledAsking},
	{"what it said before it was stopped is kept", interrupted},
	{"it goes on with a conversation of its own", resumes},
}

// need returns the task for an ability.
func need(t *testing.T, in *tapedeck.Invocation) tapedeck.Invocation {
	t.Helper()
	if in == nil {
		t.Skip("the harness has no task for it")
	}
	return invocation(*in, "inv_1")
}

// of returns the events of a type.
func of(events []tapedeck.Event, typ string) (out []tapedeck.Event) {
	for _, e := range events {
		if e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

func tools(t *testing.T, h Harness) {
	in := need(t, h.Tools)
	events, err := h.collect(t, t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, in, events)
	called, answered := map[string]bool{}, map[string]bool{}
	for _, e := range of(events, tapedeck.ToolCallStart) {
		called[read(t, e).ToolCallID] = true
	}
	for _, e := range of(events, tapedeck.ToolCallResult) {
		answered[read(t, e).ToolCallID] = true
	}
	if len(called) == 0 {
		t.Fatal("Tools calls no tool")
	}
	for id := range called {
		if !answered[id] {
			t.Errorf("the call %s has no result", id)
		}
	}
}

func plan(t *testing.T, h Harness) {
	events, err := h.collect(t, t.Context(), need(t, h.Plan))
	if err != nil {
		t.Fatal(err)
	}
	plans := of(events, tapedeck.PlanUpdated)
	if len(plans) == 0 {
		t.Fatal("Plan has no plan")
	}
	for _, e := range plans {
		var d payload.PlanUpdated
		if err := json.Unmarshal(e.Data, &d); err != nil || len(d.Entries) == 0 {
			t.Errorf("the plan is %s, %v", e.Data, err)
		}
		for _, p := range d.Entries {
			if p.Content == "" || p.Status != "pending" && p.Status != "in_progress" && p.Status != "completed" {
				t.Errorf("a step is %+v", p)
			}
		}
	}
}

func usage(t *testing.T, h Harness) {
	events, err := h.collect(t, t.Context(), need(t, h.Usage))
	if err != nil {
		t.Fatal(err)
	}
	reports := of(events, tapedeck.UsageReported)
	if len(reports) == 0 {
		t.Fatal("Usage reports nothing")
	}
	for _, e := range reports {
		var d struct{ InputTokens, OutputTokens int64 }
		if err := json.Unmarshal(e.Data, &d); err != nil || d.InputTokens <= 0 && d.OutputTokens <= 0 {
			t.Errorf("the usage is %s, %v", e.Data, err)
		}
	}
}

// subagents wants each to begin and to end, and what names it to be between: the
// engine gives it a thread of its own.
func subagents(t *testing.T, h Harness) {
	in := need(t, h.Subagent)
	events, err := h.collect(t, t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, in, events)
	open, spoke := map[string]bool{}, 0
	for _, e := range events {
		var d struct {
			ID string `json:"subagentRunId"`
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatalf("%s %s: %v", e.Type, e.Data, err)
		}
		switch {
		case d.ID == "":
		case e.Type == tapedeck.SubagentStarted:
			open[d.ID] = true
		case !open[d.ID]:
			t.Errorf("%s %s: the sub-agent is not at work", e.Type, e.Data)
		case e.Type == tapedeck.SubagentFinished, e.Type == tapedeck.SubagentError:
			delete(open, d.ID)
		case e.Type == tapedeck.TextMessageStart:
			spoke++
		}
	}
	if spoke == 0 || len(open) > 0 {
		t.Errorf("sub-agents have said %d messages, and have not ended: %v", spoke, open)
	}
}

// A clerk answers all questions in the same way.
type clerk struct {
	t    *testing.T
	kind string // of the option, without "_once" and "_always"

	mu    sync.Mutex
	asked []tapedeck.Question
}

func (c *clerk) ask(ctx context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
	c.mu.Lock()
	c.asked = append(c.asked, q)
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return tapedeck.Choice{ID: q.ID, Outcome: "cancelled"}, nil
	default:
	}
	for _, o := range q.Options {
		if o.Kind == c.kind+"_once" || o.Kind == c.kind+"_always" {
			return tapedeck.Choice{ID: q.ID, Option: o.ID, Outcome: "selected"}, nil
		}
	}
	c.t.Errorf("the question has no option of kind %s: %+v", c.kind, q.Options)
	return tapedeck.Choice{ID: q.ID, Outcome: "cancelled"}, nil
}

// answering runs Ask with a clerk.
func answering(t *testing.T, h Harness, kind string) {
	in := need(t, h.Ask)
	c := &clerk{t: t, kind: kind}
	in.Ask = c.ask
	events, err := h.collect(t, t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, in, events)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		t.Error("Ask asks nothing")
	}
	if len(of(events, tapedeck.PermissionRequested))+len(of(events, tapedeck.PermissionAnswered)) > 0 {
		t.Error("what it asks with Ask is the engine's to write")
	}
}

func (h *Harness) did(t *testing.T, want bool) {
	t.Helper()
	if h.Did != nil && h.Did() != want {
		t.Errorf("it was done: %t, want %t", !want, want)
	}
}

func allowed(t *testing.T, h Harness) {
	answering(t, h, "allow")
	h.did(t, true)
}

func denied(t *testing.T, h Harness) {
	answering(t, h, "reject")
	h.did(t, false)
}

func unasked(t *testing.T, h Harness) {
	in := need(t, h.Ask)
	events, err := h.collect(t, t.Context(), in)
	if err == nil { // it may also fail
		verify(t, in, events)
	}
	h.did(t, false)
}

func cancelledAsking(t *testing.T, h Harness) {
	in := need(t, h.Ask)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in.Ask = func(ask context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
		cancel()
		select { // as the engine does
		case <-ask.Done():
		case <-ctx.Done():
		}
		return tapedeck.Choice{ID: q.ID, Outcome: "cancelled"}, nil
	}
	if _, err := h.collect(t, ctx, in); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("it was cancelled and failed: %v", err)
	}
	if ctx.Err() == nil {
		t.Error("Ask asks nothing")
	}
	h.did(t, false)
}

// interrupted stops Endless when it has said something. What it still says must
// fit to that, whatever it leaves open: the engine closes it.
func interrupted(t *testing.T, h Harness) {
	c, ok := h.Runner.(runner.Capable)
	if !ok || !c.Capabilities().Interrupt {
		t.Skip("the runner does not say that it can be interrupted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := invocation(h.Endless, "inv_1")
	v := order.NewVerifier()
	begin := tapedeck.Event{Type: tapedeck.RunStarted, Invocation: in.ID, Thread: in.Thread, Data: json.RawMessage(`{"threadId":"t","runId":"inv_1"}`)}
	if err := v.Add(&begin); err != nil {
		t.Fatal(err)
	}
	said := ""
	h.within(t, func() {
		for e, err := range h.Runner.Run(ctx, in) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("it was interrupted and failed: %v", err)
				}
				continue
			}
			e.Invocation, e.Thread = in.ID, in.Thread
			if err := v.Add(&e); err != nil {
				t.Errorf("%s %s: %v", e.Type, e.Data, err)
			}
			if e.Type == tapedeck.TextMessageContent || e.Type == tapedeck.ReasoningMessageContent {
				said += read(t, e).Delta
				cancel()
			}
		}
	})
	if said == "" {
		t.Error("it was stopped before it said anything")
	}
}

func resumes(t *testing.T, h Harness) {
	if h.Resume == nil {
		t.Skip("the harness has no task for it")
	}
	first, err := h.collect(t, t.Context(), invocation(h.Talk, "inv_1"))
	if err != nil {
		t.Fatal(err)
	}
	links := of(first, tapedeck.AgentLinked)
	if len(links) == 0 {
		t.Fatal("Talk has told no conversation of its own")
	}
	var told payload.AgentLinked
	if err := json.Unmarshal(links[len(links)-1].Data, &told); err != nil || told.Runner == "" || told.NativeID == "" {
		t.Fatalf("the link is %s, %v", links[0].Data, err)
	}
	in := invocation(*h.Resume, "inv_2")
	in.Link = &tapedeck.Link{Runner: told.Runner, NativeID: told.NativeID, Offset: 1}
	events, err := h.collect(t, t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, in, events)
	want := Harness{Text: h.Remembers}
	want.compare(t, events)
}
