package tapedeck

import "testing"

// TestVerifierBeginsAnewInAFork: a run that the parent had open where it was
// forked is nobody's in the fork, and its thread is free.
func TestVerifierBeginsAnewInAFork(t *testing.T) {
	run := func(id string) *Event {
		e := NewEvent(RunStartedData{ThreadID: MainThread, RunID: id})
		e.Invocation = id
		return &e
	}
	v := NewVerifier()
	if err := v.Add(run("inv_1")); err != nil {
		t.Fatal(err)
	}
	if err := v.Add(run("inv_2")); KindOf(err) != Conflict {
		t.Fatalf("a second run on the thread: %v", err)
	}
	if err := v.Add(&Event{Type: SessionForked}); err != nil {
		t.Fatal(err)
	}
	text := NewEvent(TextMessageStartData{MessageID: "m"})
	text.Invocation = "inv_1"
	if err := v.Add(&text); KindOf(err) != Conflict {
		t.Errorf("the parent's run goes on in the fork: %v", err)
	}
	if err := v.Add(run("inv_2")); err != nil {
		t.Errorf("the fork's own run: %v", err)
	}
}
