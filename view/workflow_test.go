package view_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// foldWorkflow folds the active events.
func foldWorkflow(events []tapedeck.Event) *view.WorkflowFold {
	var jumps []tapedeck.Jump
	for i := range events {
		if j, ok := events[i].Jump(); ok {
			jumps = append(jumps, j)
		}
	}
	t, f := view.NewTimeline(jumps), view.NewWorkflowFold("")
	for i := range events {
		if e := &events[i]; t.Has(e.Offset, e.ThreadName(), int64(len(events))) {
			f.Apply(e)
		}
	}
	return f
}

func TestWorkflowFixtures(t *testing.T) {
	testFixtures(t, "workflow", func(t *testing.T, _ viewFixture, events []tapedeck.Event) any {
		w, ok := foldWorkflow(events).Workflow()
		if !ok {
			t.Fatal("there is no workflow")
		}
		return w
	})
}

// TestWorkflowFoldsAreSaved: folds that are stored and loaded after any event continue as
// if they had not been.
func TestWorkflowFoldsAreSaved(t *testing.T) {
	testFixtures(t, "workflow", func(t *testing.T, _ viewFixture, events []tapedeck.Event) any {
		for at := range events {
			kept, loaded := new(view.WorkflowFolds), new(view.WorkflowFolds)
			for i := range events {
				if i == at {
					if err := json.Unmarshal(saved(t, kept), loaded); err != nil {
						t.Fatal(err)
					}
				}
				kept.Apply(&events[i])
				if i < at {
					continue
				}
				loaded.Apply(&events[i])
				if one, other := saved(t, kept), saved(t, loaded); string(one) != string(other) {
					t.Fatalf("saved before event %d, then event %d:\n%s\n%s", at, i, one, other)
				}
			}
		}
		w, ok := foldWorkflow(events).Workflow()
		if !ok {
			t.Fatal("there is no workflow")
		}
		return w
	})
}

func saved(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// longWorkflow returns the events of a process in which n elements are entered, one
// after the other.
func longWorkflow(n int) []tapedeck.Event {
	events := []tapedeck.Event{event(tapedeck.WorkflowStarted, "", "i1", `{"digest":"d","starts":["E0"]}`)}
	for i := range n {
		flow := ""
		if i > 0 {
			flow = fmt.Sprintf(`"flows":["f%d"],`, i-1)
		}
		events = append(events,
			event(tapedeck.WorkflowEntered, "", "i1", fmt.Sprintf(`{"element":"E%d","elementType":"scriptTask",%s"activation":"%d"}`, i%50, flow, i)),
			event(tapedeck.WorkflowLeft, "", "i1", fmt.Sprintf(`{"element":"E%d","activation":"%d","flows":["f%d"],"variables":{"n":%d}}`, i%50, i, i, i)))
	}
	return numbered(events)
}

func TestWorkflowOfManyElements(t *testing.T) {
	const n = 10_000
	f := foldWorkflow(longWorkflow(n))
	w, _ := f.Workflow()
	if len(w.Elements) != 50 || len(w.Activations) != 1000 || w.Earlier != n-1000 || len(w.Tokens) != 1 || string(w.Variables["n"]) != "9999" {
		t.Errorf("%d elements, %d activations and %d before them, %d tokens, n is %s", len(w.Elements), len(w.Activations), w.Earlier, len(w.Tokens), w.Variables["n"])
	}
	if el := w.Elements[0]; el.Entered != n/50 || el.Left != n/50 || el.Open != 0 {
		t.Errorf("%+v", el)
	}
}

// TestManyCompensableActivities: a log that no runner wrote does not fill the memory, and finding
// what is compensated does not take longer and longer.
func TestManyCompensableActivities(t *testing.T) {
	f := view.NewWorkflowFold("")
	apply := func(typ, data string) {
		e := event(typ, "", "i1", data)
		f.Apply(&e)
	}
	apply(tapedeck.WorkflowStarted, `{"digest":"d"}`)
	for i := range view.MaxCompensable + 100 {
		apply(tapedeck.WorkflowEntered, fmt.Sprintf(`{"element":"E","activation":"%d"}`, i))
		apply(tapedeck.WorkflowLeft, fmt.Sprintf(`{"element":"E","activation":"%d","compensable":true}`, i))
	}
	if f.Kept() != view.MaxCompensable || len(f.Compensable("")) != view.MaxCompensable {
		t.Errorf("%d are kept", f.Kept())
	}
	for i := range view.MaxCompensable + 100 {
		apply(tapedeck.WorkflowEntered, fmt.Sprintf(`{"element":"U","activation":"u%d","compensates":"%[1]d"}`, i))
	}
	if f.Kept() != 0 || len(f.Compensable("")) != 0 {
		t.Errorf("%d are kept after all were compensated", f.Kept())
	}
}

// TestWorkflowIsACopy: what Workflow returned does not change with later events.
func TestWorkflowIsACopy(t *testing.T) {
	events := longWorkflow(3)
	f := view.NewWorkflowFold("")
	for i := range events {
		f.Apply(&events[i])
		w, _ := f.Workflow()
		then, _ := json.Marshal(w)
		g := foldWorkflow(events[:i+1])
		for j := range events[i+1:] {
			g.Apply(&events[i+1+j])
		}
		if now, _ := json.Marshal(w); string(now) != string(then) {
			t.Fatalf("after event %d: %s became %s", i, then, now)
		}
	}
}

func BenchmarkWorkflowFold(b *testing.B) {
	events := longWorkflow(10_000)
	b.ReportAllocs()
	for b.Loop() {
		f := view.NewWorkflowFold("")
		for i := range events {
			f.Apply(&events[i])
		}
	}
}
