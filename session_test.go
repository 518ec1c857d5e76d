package tapedeck

import (
	"encoding/json"
	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck/tapedeck/payload"
	"testing"
	"time"
)

func TestSessionApply(t *testing.T) {
	created := payload.SessionCreated{Title: "One", Owner: "ada", Agent: "coder", Labels: Labels{"k": "v"}}
	start := func(offset int64, inv, thread, owner string) Event {
		e := payload.NewEvent(payload.RunStarted{ThreadID: thread, RunID: inv, Common: payload.Common{Metadata: Members{VendorKey: []byte(`{"owner":"` + owner + `"}`)}}})
		e.Offset, e.Invocation, e.Thread = offset, inv, thread
		return e
	}
	end := func(inv string, p payload.Payload) Event {
		e := payload.NewEvent(p)
		e.Invocation = inv
		return e
	}
	open := OpenRun{Invocation: "i", Thread: MainThread, Offset: 1, Started: noon, Owner: "e1"}
	other := OpenRun{Invocation: "j", Thread: "b", Offset: 2, Started: noon, Owner: "e2"}
	finished := payload.RunFinished{ThreadID: MainThread, RunID: "i"}
	outcome := func(typ string) payload.Payload {
		return payload.RunFinished{ThreadID: MainThread, RunID: "i", Outcome: &payload.Outcome{Type: typ, Interrupts: []payload.Interrupt{{ID: "x", Reason: "y"}}}}
	}
	begun := []Event{start(1, "i", "", "e1")}
	said := func(inv, role string) Event {
		e := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m", role, "Hi")})
		e.Invocation = inv
		return e
	}

	for name, test := range map[string]struct {
		events []Event
		want   Session
	}{
		"created":              {[]Event{payload.NewEvent(created)}, Session{Title: "One", Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"renamed":              {[]Event{payload.NewEvent(created), payload.NewEvent(payload.SessionRenamed{Title: new("Two")})}, Session{Title: "Two", Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"title taken away":     {[]Event{payload.NewEvent(created), payload.NewEvent(payload.SessionRenamed{Title: new("")})}, Session{Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"labelled anew":        {[]Event{payload.NewEvent(created), payload.NewEvent(payload.SessionRenamed{Labels: Labels{}})}, Session{Title: "One", Owner: "ada", Agent: "coder", Labels: Labels{}}},
		"forked":               {[]Event{payload.NewEvent(payload.SessionForked{Parent: "p", At: 3, Title: "Fork"})}, Session{Title: "Fork"}},
		"nonsense title":       {[]Event{payload.NewEvent(created), {Type: SessionRenamed, Data: []byte(`{"title":5,"owner":"eve"}`)}}, Session{Title: "One", Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"other types":          {[]Event{payload.NewEvent(created), payload.NewEvent(payload.SessionCleared{}), payload.NewEvent(payload.BookmarkAdded{Label: "x"}), {Type: "my.own"}}, Session{Title: "One", Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"asked for":            {[]Event{said("i", RoleUser)}, Session{Status: StatusPending}},
		"asked for and begun":  {[]Event{said("i", RoleUser), begun[0]}, Session{Status: StatusRunning, Runs: []OpenRun{open}}},
		"said of no run":       {[]Event{said("", RoleUser), said("i", RoleSystem), {Type: MessageAdded, Invocation: "i", Data: []byte(`{"message":5}`)}}, Session{}},
		"said late":            {append(begun[:1:1], end("i", finished), said("i", RoleUser)), Session{Status: StatusComplete, Runs: []OpenRun{}}},
		"running":              {begun, Session{Status: StatusRunning, Runs: []OpenRun{open}}},
		"two runs":             {append(begun[:1:1], start(2, "j", "b", "e2")), Session{Status: StatusRunning, Runs: []OpenRun{open, other}}},
		"one of two ends":      {append(begun[:1:1], start(2, "j", "b", "e2"), end("i", finished)), Session{Status: StatusRunning, Runs: []OpenRun{other}}},
		"complete":             {append(begun[:1:1], end("i", finished)), Session{Status: StatusComplete, Runs: []OpenRun{}}},
		"success":              {append(begun[:1:1], end("i", outcome(OutcomeSuccess))), Session{Status: StatusComplete, Runs: []OpenRun{}}},
		"cancelled":            {append(begun[:1:1], end("i", outcome(OutcomeCancelled))), Session{Status: StatusCancelled, Runs: []OpenRun{}, Resumable: new(true)}},
		"interrupted":          {append(begun[:1:1], end("i", outcome(OutcomeInterrupt))), Session{Status: StatusInterrupted, Runs: []OpenRun{}}},
		"outcome of a kind":    {append(begun[:1:1], end("i", outcome("unheard"))), Session{Status: StatusComplete, Runs: []OpenRun{}}},
		"outcome a string":     {append(begun[:1:1], Event{Type: RunFinished, Invocation: "i", Data: []byte(`{"outcome":"cancelled"}`)}), Session{Status: StatusComplete, Runs: []OpenRun{}}},
		"failed":               {append(begun[:1:1], end("i", payload.RunError{Message: "m", Code: "c"})), Session{Status: StatusFailed, Runs: []OpenRun{}}},
		"process died":         {append(begun[:1:1], end("i", payload.RunError{Message: "m", Code: CodeInterrupted})), Session{Status: StatusInterrupted, Runs: []OpenRun{}}},
		"lease ran out":        {append(begun[:1:1], end("i", payload.RunError{Message: "m", Code: CodeLeaseExpired})), Session{Status: StatusInterrupted, Runs: []OpenRun{}}},
		"end of an unknown":    {append(begun[:1:1], end("x", finished)), Session{Status: StatusRunning, Runs: []OpenRun{open}}},
		"begins after an end":  {append(begun[:1:1], end("i", finished), start(2, "j", "b", "e2")), Session{Status: StatusRunning, Runs: []OpenRun{other}}},
		"metadata of no shape": {[]Event{{Type: RunStarted, Invocation: "i", Offset: 1, Data: []byte(`{"metadata":{"tapedeck":5}}`)}}, Session{Status: StatusRunning, Runs: []OpenRun{{Invocation: "i", Thread: MainThread, Offset: 1, Started: noon}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var s Session
			for _, e := range test.events {
				e.Time = noon
				s.Apply(&e)
			}
			test.want.Updated = noon
			if !cmp.Equal(s, test.want) {
				t.Error(cmp.Diff(test.want, s))
			}
		})
	}
}

func TestSessionApplyLeavesCopies(t *testing.T) {
	var s Session
	s.Apply(&Event{Type: RunStarted, Invocation: "i", Time: noon})
	s.Apply(&Event{Type: RunStarted, Invocation: "j", Thread: "b", Time: noon})
	before := s
	s.Apply(&Event{Type: RunFinished, Invocation: "i", Time: noon})
	s.Apply(&Event{Type: RunStarted, Invocation: "k", Thread: "c", Time: noon})
	if len(before.Runs) != 2 || before.Runs[0].Invocation != "i" || before.Runs[1].Invocation != "j" {
		t.Errorf("a copy changed to %+v", before.Runs)
	}
	if r, ok := s.Run("c"); !ok || r.Invocation != "k" {
		t.Errorf("the run of thread c is %+v", r)
	}
	if _, ok := s.Run(MainThread); ok {
		t.Error("the main thread still has a run")
	}
}

func TestSessionUpdatedDoesNotGoBack(t *testing.T) {
	s := Session{Updated: noon}
	s.Apply(&Event{Type: Custom, Time: noon.Add(-time.Hour)})
	if !s.Updated.Equal(noon) {
		t.Errorf("updated at %v", s.Updated)
	}
}

// TestTimesOfASessionHaveMilliseconds: they are those of its events, and can be
// compared with them as text.
func TestTimesOfASessionHaveMilliseconds(t *testing.T) {
	at := time.Date(2026, 1, 5, 12, 0, 0, 120_000_000, time.UTC)
	s := Session{ID: "s", Kind: KindSession, Created: at, Updated: at, Title: "<T>",
		Runs: []OpenRun{{Invocation: "i", Thread: "main", Started: at.Truncate(time.Second)}}}
	b, err := json.Marshal(s)
	const want = `{"id":"s","kind":"session","created_at":"2026-01-05T12:00:00.120Z","updated_at":"2026-01-05T12:00:00.120Z","title":"\u003cT\u003e",` +
		`"runs":[{"invocation":"i","thread":"main","offset":0,"started_at":"2026-01-05T12:00:00.000Z"}],"head":0}`
	if err != nil || string(b) != want {
		t.Errorf("%v: got  %s\nwant %s", err, b, want)
	}
	var back Session
	if err := json.Unmarshal(b, &back); err != nil || !back.Updated.Equal(at) || back.Title != "<T>" || len(back.Runs) != 1 {
		t.Errorf("it does not come back: %v %+v", err, back)
	}
}
