package order

import (
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// TestVerifierBeginsAnewInAFork: a run that the parent had open where it was
// forked is nobody's in the fork, and its thread is free.
func TestVerifierBeginsAnewInAFork(t *testing.T) {
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
