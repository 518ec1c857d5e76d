package order

import (
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// TestForkHasNoOpenRuns checks that a run which the parent had open at the fork
// is not open in the fork, and that its thread is free.
func TestForkHasNoOpenRuns(t *testing.T) {
	run := func(id string) *tapedeck.Event {
		e := payload.NewEvent(payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: id})
		e.Invocation = id
		return &e
	}
	v := NewVerifier()
	if err := v.Add(run("inv_1")); err != nil {
		t.Fatal(err)
	}
	if err := v.Add(run("inv_2")); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Fatalf("a second run on the thread: %v", err)
	}
	if err := v.Add(&tapedeck.Event{Type: tapedeck.SessionForked}); err != nil {
		t.Fatal(err)
	}
	text := payload.NewEvent(payload.TextMessageStart{MessageID: "m"})
	text.Invocation = "inv_1"
	if err := v.Add(&text); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("the parent's run goes on in the fork: %v", err)
	}
	if err := v.Add(run("inv_2")); err != nil {
		t.Errorf("the fork's own run: %v", err)
	}
}
