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

// Abilities has tasks for the abilities that only some runners have. A test whose task is
// nil is skipped.
type Abilities struct {
	Tools *tapedeck.Invocation // calls a tool and continues with its result
	Plan  *tapedeck.Invocation // reports a plan
	Usage *tapedeck.Invocation // reports the usage of a model call

	Subagent *tapedeck.Invocation // starts another agent, which yields text

	Ask *tapedeck.Invocation // asks for a permission, and ends by itself after any answer
	Did func() bool          // reports whether the runner of this harness did what it asked for; nil if unknown

	Resume    *tapedeck.Invocation // resumes the conversation that Talk has begun
	Remembers string               // the text of Resume, which it can know only from Talk; "" to skip the comparison
}

var abilityTests = []suiteTest{
	{"every tool call has a result", tools},
	{"it reports its plan", plan},
	{"it reports usage", usage},
	{"messages of sub-agents name the sub-agent", subagents},
	{"it does what is allowed", allowed},
	{"it does not do what is denied", denied},
	{"it does nothing that needs permission if nobody can be asked", unasked},
	{"it does not wait for an answer when it is cancelled", cancelledAsking},
	{"its events are in order after an interrupt", interrupted},
	{"it resumes its own conversation", resumes},
}

// need returns the task for an ability. It skips the test if there is no task.
func need(t *testing.T, in *tapedeck.Invocation) tapedeck.Invocation {
	t.Helper()
	if in == nil {
		t.Skip("the harness has no task for this ability")
	}
	return invocation(*in, "inv_1")
}

// ofType returns the events of a type.
func ofType(events []tapedeck.Event, typ string) (out []tapedeck.Event) {
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
	for _, e := range ofType(events, tapedeck.ToolCallStart) {
		called[read(t, e).ToolCallID] = true
	}
	for _, e := range ofType(events, tapedeck.ToolCallResult) {
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
	plans := ofType(events, tapedeck.PlanUpdated)
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
	reports := ofType(events, tapedeck.UsageReported)
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

// subagents checks that each sub-agent begins and ends, and that every event which names it
// is between, because the engine gives each sub-agent a thread of its own.
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
			t.Errorf("%s %s: the sub-agent has not begun or has ended", e.Type, e.Data)
		case e.Type == tapedeck.SubagentFinished, e.Type == tapedeck.SubagentError:
			delete(open, d.ID)
		case e.Type == tapedeck.TextMessageStart:
			spoke++
		}
	}
	if spoke == 0 || len(open) > 0 {
		t.Errorf("sub-agents have sent %d messages; these have not ended: %v", spoke, open)
	}
}

// A clerk gives the same answer to all questions.
type clerk struct {
	t    *testing.T
	kind string // the kind of the option to choose, without "_once" and "_always"

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

// answering runs Ask with a clerk that chooses options of a kind.
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
	if len(ofType(events, tapedeck.PermissionRequested))+len(ofType(events, tapedeck.PermissionAnswered)) > 0 {
		t.Error("the engine writes the events of Ask, not the runner")
	}
}

func (h *Harness) did(t *testing.T, want bool) {
	t.Helper()
	if h.Did != nil && h.Did() != want {
		t.Errorf("the runner did what it asked for: %t, want %t", !want, want)
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
	if err == nil { // the run may also fail
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

// interrupted stops Endless after its first text. The following events must be in order.
// Open parts may stay open, because the engine ends them.
func interrupted(t *testing.T, h Harness) {
	c, ok := h.Runner.(runner.Capable)
	if !ok || !c.Capabilities().Interrupt {
		t.Skip("the runner does not report the capability Interrupt")
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
			if h.Wordless {
				cancel()
			}
			if e.Type == tapedeck.TextMessageContent || e.Type == tapedeck.ReasoningMessageContent {
				said += string(read(t, e).Delta)
				cancel()
			}
		}
	})
	if said == "" && !h.Wordless {
		t.Error("it yielded no text")
	}
}

func resumes(t *testing.T, h Harness) {
	if h.Resume == nil {
		t.Skip("the harness has no task for this ability")
	}
	first, err := h.collect(t, t.Context(), invocation(h.Talk, "inv_1"))
	if err != nil {
		t.Fatal(err)
	}
	links := ofType(first, tapedeck.AgentLinked)
	if len(links) == 0 {
		t.Fatal("Talk has no event with its own conversation")
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
