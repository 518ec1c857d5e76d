package tapedeck_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

var noon = time.Date(2026, 1, 5, 12, 34, 56, 789e6, time.UTC)

func TestSessionApply(t *testing.T) {
	created := payload.SessionCreated{Title: "One", Owner: "ada", Agent: "coder", Labels: map[string]string{"k": "v"}}
	start := func(offset int64, inv, thread, owner string) tapedeck.Event {
		e := payload.NewEvent(payload.RunStarted{ThreadID: thread, RunID: inv, Common: payload.Common{Metadata: tapedeck.Meta{Owner: owner}.In(nil)}})
		e.Offset, e.Invocation, e.Thread = offset, inv, thread
		return e
	}
	end := func(inv string, p payload.Payload) tapedeck.Event {
		e := payload.NewEvent(p)
		e.Invocation = inv
		return e
	}
	open := tapedeck.OpenRun{Invocation: "i", Thread: tapedeck.MainThread, Offset: 1, Started: noon, Owner: "e1"}
	other := tapedeck.OpenRun{Invocation: "j", Thread: "b", Offset: 2, Started: noon, Owner: "e2"}
	finished := payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: "i"}
	outcome := func(typ string) payload.Payload {
		return payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: "i", Outcome: &payload.Outcome{Type: typ, Interrupts: []payload.Interrupt{{ID: "x", Reason: "y"}}}}
	}
	begun := []tapedeck.Event{start(1, "i", "", "e1")}
	said := func(inv, role string) tapedeck.Event {
		e := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m", role, "Hi")})
		e.Invocation = inv
		return e
	}

	for name, test := range map[string]struct {
		events []tapedeck.Event
		want   tapedeck.Session
	}{
		"created":              {[]tapedeck.Event{payload.NewEvent(created)}, tapedeck.Session{Title: "One", Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"renamed":              {[]tapedeck.Event{payload.NewEvent(created), payload.NewEvent(payload.SessionRenamed{Title: new("Two")})}, tapedeck.Session{Title: "Two", Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"title removed":        {[]tapedeck.Event{payload.NewEvent(created), payload.NewEvent(payload.SessionRenamed{Title: new("")})}, tapedeck.Session{Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"labelled again":       {[]tapedeck.Event{payload.NewEvent(created), payload.NewEvent(payload.SessionRenamed{Labels: map[string]string{}})}, tapedeck.Session{Title: "One", Owner: "ada", Agent: "coder", Labels: map[string]string{}}},
		"forked":               {[]tapedeck.Event{payload.NewEvent(payload.SessionForked{Parent: "p", At: 3, Title: "Fork"})}, tapedeck.Session{Title: "Fork"}},
		"nonsense title":       {[]tapedeck.Event{payload.NewEvent(created), {Type: tapedeck.SessionRenamed, Data: []byte(`{"title":5,"owner":"eve"}`)}}, tapedeck.Session{Title: "One", Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"other types":          {[]tapedeck.Event{payload.NewEvent(created), payload.NewEvent(payload.SessionCleared{}), payload.NewEvent(payload.BookmarkAdded{Label: "x"}), {Type: "my.own"}}, tapedeck.Session{Title: "One", Owner: "ada", Agent: "coder", Labels: created.Labels}},
		"asked for":            {[]tapedeck.Event{said("i", payload.RoleUser)}, tapedeck.Session{Status: tapedeck.StatusPending}},
		"asked for and begun":  {[]tapedeck.Event{said("i", payload.RoleUser), begun[0]}, tapedeck.Session{Status: tapedeck.StatusRunning, Runs: []tapedeck.OpenRun{open}}},
		"said of no run":       {[]tapedeck.Event{said("", payload.RoleUser), said("i", payload.RoleSystem), {Type: tapedeck.MessageAdded, Invocation: "i", Data: []byte(`{"message":5}`)}}, tapedeck.Session{}},
		"said late":            {append(begun[:1:1], end("i", finished), said("i", payload.RoleUser)), tapedeck.Session{Status: tapedeck.StatusComplete, Runs: []tapedeck.OpenRun{}}},
		"running":              {begun, tapedeck.Session{Status: tapedeck.StatusRunning, Runs: []tapedeck.OpenRun{open}}},
		"two runs":             {append(begun[:1:1], start(2, "j", "b", "e2")), tapedeck.Session{Status: tapedeck.StatusRunning, Runs: []tapedeck.OpenRun{open, other}}},
		"one of two ends":      {append(begun[:1:1], start(2, "j", "b", "e2"), end("i", finished)), tapedeck.Session{Status: tapedeck.StatusRunning, Runs: []tapedeck.OpenRun{other}}},
		"complete":             {append(begun[:1:1], end("i", finished)), tapedeck.Session{Status: tapedeck.StatusComplete, Runs: []tapedeck.OpenRun{}}},
		"success":              {append(begun[:1:1], end("i", outcome(payload.OutcomeSuccess))), tapedeck.Session{Status: tapedeck.StatusComplete, Runs: []tapedeck.OpenRun{}}},
		"cancelled":            {append(begun[:1:1], end("i", outcome(payload.OutcomeCancelled))), tapedeck.Session{Status: tapedeck.StatusCancelled, Runs: []tapedeck.OpenRun{}, Resumable: new(true)}},
		"interrupted":          {append(begun[:1:1], end("i", outcome(payload.OutcomeInterrupt))), tapedeck.Session{Status: tapedeck.StatusInterrupted, Runs: []tapedeck.OpenRun{}}},
		"outcome of a kind":    {append(begun[:1:1], end("i", outcome("unheard"))), tapedeck.Session{Status: tapedeck.StatusComplete, Runs: []tapedeck.OpenRun{}}},
		"outcome a string":     {append(begun[:1:1], tapedeck.Event{Type: tapedeck.RunFinished, Invocation: "i", Data: []byte(`{"outcome":"cancelled"}`)}), tapedeck.Session{Status: tapedeck.StatusComplete, Runs: []tapedeck.OpenRun{}}},
		"failed":               {append(begun[:1:1], end("i", payload.RunError{Message: "m", Code: "c"})), tapedeck.Session{Status: tapedeck.StatusFailed, Runs: []tapedeck.OpenRun{}}},
		"process died":         {append(begun[:1:1], end("i", payload.RunError{Message: "m", Code: tapedeck.CodeInterrupted})), tapedeck.Session{Status: tapedeck.StatusInterrupted, Runs: []tapedeck.OpenRun{}}},
		"lease ran out":        {append(begun[:1:1], end("i", payload.RunError{Message: "m", Code: tapedeck.CodeLeaseExpired})), tapedeck.Session{Status: tapedeck.StatusInterrupted, Runs: []tapedeck.OpenRun{}}},
		"end of an unknown":    {append(begun[:1:1], end("x", finished)), tapedeck.Session{Status: tapedeck.StatusRunning, Runs: []tapedeck.OpenRun{open}}},
		"begins after an end":  {append(begun[:1:1], end("i", finished), start(2, "j", "b", "e2")), tapedeck.Session{Status: tapedeck.StatusRunning, Runs: []tapedeck.OpenRun{other}}},
		"metadata of no shape": {[]tapedeck.Event{{Type: tapedeck.RunStarted, Invocation: "i", Offset: 1, Data: []byte(`{"metadata":{"tapedeck":5}}`)}}, tapedeck.Session{Status: tapedeck.StatusRunning, Runs: []tapedeck.OpenRun{{Invocation: "i", Thread: tapedeck.MainThread, Offset: 1, Started: noon}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var s tapedeck.Session
			for _, e := range test.events {
				e.Time = noon
				s.Apply(&e)
			}
			test.want.Updated, test.want.Active = noon, s.Active // TestActive
			s.Spent = nil                                        // TestSpending
			if !cmp.Equal(s, test.want) {
				t.Error(cmp.Diff(test.want, s))
			}
		})
	}
}

func TestSessionApplyLeavesCopies(t *testing.T) {
	var s tapedeck.Session
	s.Apply(&tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "i", Time: noon})
	s.Apply(&tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "j", Thread: "b", Time: noon})
	before := s
	s.Apply(&tapedeck.Event{Type: tapedeck.RunFinished, Invocation: "i", Time: noon})
	s.Apply(&tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "k", Thread: "c", Time: noon})
	if len(before.Runs) != 2 || before.Runs[0].Invocation != "i" || before.Runs[1].Invocation != "j" {
		t.Errorf("a copy changed to %+v", before.Runs)
	}
	if r, ok := s.Run("c"); !ok || r.Invocation != "k" {
		t.Errorf("the run of thread c is %+v", r)
	}
	if _, ok := s.Run(tapedeck.MainThread); ok {
		t.Error("the main thread still has a run")
	}
}

func TestSessionUpdatedDoesNotGoBack(t *testing.T) {
	s := tapedeck.Session{Updated: noon}
	s.Apply(&tapedeck.Event{Type: tapedeck.Custom, Time: noon.Add(-time.Hour)})
	if !s.Updated.Equal(noon) {
		t.Errorf("updated at %v", s.Updated)
	}
}

// TestTimesOfASessionHaveMilliseconds checks that times in an entry have the
// format of events, so that both can be compared as text.
func TestTimesOfASessionHaveMilliseconds(t *testing.T) {
	at := time.Date(2026, 1, 5, 12, 0, 0, 120_000_000, time.UTC)
	s := tapedeck.Session{ID: "s", Kind: tapedeck.KindSession, Created: at, Updated: at, Title: "<T>",
		Runs: []tapedeck.OpenRun{{Invocation: "i", Thread: "main", Started: at.Truncate(time.Second)}}}
	b, err := json.Marshal(s)
	const want = `{"id":"s","kind":"session","created_at":"2026-01-05T12:00:00.120Z","updated_at":"2026-01-05T12:00:00.120Z","title":"\u003cT\u003e",` +
		`"runs":[{"invocation":"i","thread":"main","offset":0,"started_at":"2026-01-05T12:00:00.000Z"}],"head":0}`
	if err != nil || string(b) != want {
		t.Errorf("%v: got  %s\nwant %s", err, b, want)
	}
	var back tapedeck.Session
	if err := json.Unmarshal(b, &back); err != nil || !back.Updated.Equal(at) || back.Title != "<T>" || len(back.Runs) != 1 {
		t.Errorf("it does not come back: %v %+v", err, back)
	}
}

// Stores keep an entry as JSON: a field that its encoding leaves out is lost at a restart.
func TestSessionAsJSON(t *testing.T) {
	var s tapedeck.Session
	fill(reflect.ValueOf(&s).Elem())
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var got tapedeck.Session
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for _, list := range []struct{ got, want any }{{got.Runs, s.Runs}, {got.Inputs, s.Inputs}, {got.Waiting, s.Waiting}, {got.Budget, s.Budget}, {got.Spent, s.Spent}, {got.ClosedBy, s.ClosedBy}} {
		if !reflect.DeepEqual(list.got, list.want) {
			t.Errorf("got %+v\nwant %+v", list.got, list.want)
		}
	}
}

// fill gives each field a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(1_767_616_496_789).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type().Field(i).Tag.Get("json") != "-" {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k)
		fill(e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	}
}
