package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/store"
)

func (w *world) erase(r api.Erase) api.Erased {
	w.Helper()
	done, err := w.Erase(w.Context(), r)
	w.must(err)
	return done
}

// text returns the whole log of a session as text.
func (w *world) text(session string) string {
	var b strings.Builder
	for _, ev := range w.events(session) { // which checks that they are still in order
		b.Write(ev.Data)
	}
	return b.String()
}

func span(from, to int64) []tapedeck.OffsetRange { return []tapedeck.OffsetRange{{From: from, To: to}} }

func TestEraseSome(t *testing.T) {
	w := newWorld(t, silent)
	w.create("a")
	w.must(w.append("a", userSays("one"), userSays("two"), userSays("three")))
	done := w.erase(api.Erase{Session: "a", Events: []tapedeck.OffsetRange{{From: 2, To: 3}, {From: 1, To: 2}}, Reason: "asked", Actor: "user:ada"})
	want := api.Erased{Session: "a", Receipt: 4, Events: 2, Ranges: span(1, 3)}
	if d := cmp.Diff(want, done); d != "" {
		t.Error(d)
	}
	if s := w.text("a"); strings.Contains(s, "one") || strings.Contains(s, "two") || !strings.Contains(s, "three") {
		t.Errorf("the log: %s", s)
	}
	receipt := w.events("a")[4]
	if receipt.Type != tapedeck.SessionRedacted || receipt.Actor != "user:ada" || string(receipt.Data) != `{"offsets":[{"from":1,"to":3}],"reason":"asked"}` {
		t.Errorf("the receipt: %+v %s", receipt, receipt.Data)
	}
	w.must(w.append("a", userSays("four")))
}

func userSays(text string) string {
	return `message.added {"message":{"id":"` + tapedeck.NewID("MSG_") + `","role":"user","content":"` + text + `"}}`
}

// TestEraseAll: title and labels are erased with the events that set them. The
// owner and receipts stay.
func TestEraseAll(t *testing.T) {
	w := newWorld(t, silent)
	_, err := w.Create(t.Context(), api.NewSession{ID: "a", Title: "Secret", Owner: "ada", Labels: map[string]string{"k": "secret"}})
	w.must(err)
	w.must(w.append("a", userSays("secret")))
	w.erase(api.Erase{Session: "a", All: true, Reason: "first"})
	done := w.erase(api.Erase{Session: "a", All: true, Reason: "second"})
	if done.Events != 1 || done.Receipt != 4 { // the renaming
		t.Errorf("again: %+v", done)
	}
	if s := w.text("a"); strings.Contains(strings.ToLower(s), "secret") || !strings.Contains(s, "first") {
		t.Errorf("the log: %s", s)
	}
	if s := w.head("a"); s.Title != "" || len(s.Labels) != 0 || s.Owner != "ada" {
		t.Errorf("the entry: %+v", s)
	}
}

// TestEraseRequestAndTitle: a session that was titled by its first request loses the title
// with the request. A title that somebody gave stays, and so does one of another request.
func TestEraseRequestAndTitle(t *testing.T) {
	w := newWorld(t, silent)
	titled := func(task api.Task) (session string) {
		started, err := w.Start(t.Context(), task)
		w.must(err)
		_, err = w.Cancel(t.Context(), started.Session, "")
		w.must(err)
		return started.Session
	}
	request := func(session string) int64 {
		all := w.events(session)
		return all[slices.IndexFunc(all, func(e tapedeck.Event) bool { return e.Type == tapedeck.MessageAdded })].Offset
	}
	s := titled(api.Task{Text: "hunter2 is my password\nuse it"})
	at := request(s)
	done := w.erase(api.Erase{Session: s, Events: span(at, at+1)})
	if log := w.text(s); strings.Contains(log, "hunter2") || w.head(s).Title != "" {
		t.Errorf("title %q, the log: %s", w.head(s).Title, log)
	}
	if d := cmp.Diff(span(0, at+1), done.Ranges); d != "" || done.Events != 2 {
		t.Errorf("%d events: %s", done.Events, d)
	}
	for title, task := range map[string]api.Task{
		"A talk":   {Text: "hunter2 is my password", Title: "A talk"},
		"A secret": {Text: "A secret\nis this"},
	} {
		s := titled(task)
		w.must(w.append(s, userSays("something else")))
		at := request(s)
		if title == "A secret" { // another request
			at = w.head(s).Head - 1
		}
		w.erase(api.Erase{Session: s, Events: span(at, at+1)})
		if got := w.head(s).Title; got != title {
			t.Errorf("the title is %q, want %q", got, title)
		}
	}
	_, err := w.Create(t.Context(), api.NewSession{ID: "labelled", Title: "one", Labels: map[string]string{"k": "v"}})
	w.must(err)
	w.must(w.append("labelled", userSays("one")))
	w.erase(api.Erase{Session: "labelled", Events: span(1, 2)})
	if s := w.head("labelled"); s.Title != "one" || s.Labels["k"] != "v" {
		t.Errorf("the entry: %+v", s)
	}
}

// TestEraseKeepsNewerTitle: a title from an event that is not erased stays.
func TestEraseKeepsNewerTitle(t *testing.T) {
	w := newWorld(t, silent)
	_, err := w.Create(t.Context(), api.NewSession{ID: "a", Title: "Secret"})
	w.must(err)
	title := "Public"
	_, err = w.Rename(t.Context(), api.Rename{Session: "a", Title: &title})
	w.must(err)
	w.erase(api.Erase{Session: "a", Events: span(0, 1)})
	if s := w.head("a"); s.Title != "Public" || s.Head != 3 {
		t.Errorf("the entry: %+v", s)
	}
}

// entryAgrees checks that the catalogue's entry of a session is the fold of its events, as
// verify does.
func (w *world) entryAgrees(session string) {
	w.Helper()
	s := w.head(session)
	fold := tapedeck.Session{Status: tapedeck.StatusIdle}
	for ev, err := range tapedeck.Events(context.Background(), w.store, session, s.ForkedAt) {
		w.must(err)
		fold.Apply(&ev)
	}
	if differ := store.EntryDifferences(&s, &fold); len(differ) > 0 {
		w.Errorf("the entry of %s does not agree with its events: %s", session, strings.Join(differ, "; "))
	}
}

// TestEraseOfARemovedTitle: a session whose title and labels were removed has none after
// the event that removed them is erased. Those before it do not come back.
func TestEraseOfARemovedTitle(t *testing.T) {
	w := newWorld(t, silent)
	_, err := w.Create(t.Context(), api.NewSession{ID: "a", Title: "first", Labels: map[string]string{"k": "first"}})
	w.must(err)
	title := "second"
	_, err = w.Rename(t.Context(), api.Rename{Session: "a", Title: &title, Labels: map[string]string{"k": "second"}})
	w.must(err)
	w.erase(api.Erase{Session: "a", Events: span(1, 2)}) // appends the event that removes both
	w.entryAgrees("a")
	w.erase(api.Erase{Session: "a", Events: span(1, w.head("a").Head)})
	w.entryAgrees("a")
	if s := w.head("a"); s.Title != "" || len(s.Labels) != 0 {
		t.Errorf("the entry: %+v", s)
	}
	f, err := w.Fork(t.Context(), api.Fork{Parent: "a", ID: "f", Title: &title})
	w.must(err)
	empty := ""
	_, err = w.Rename(t.Context(), api.Rename{Session: "f", Title: &empty})
	w.must(err)
	w.erase(api.Erase{Session: "f", Events: span(f.ForkedAt+1, f.ForkedAt+2)})
	w.entryAgrees("f")
}

func TestEraseRefused(t *testing.T) {
	w := newWorld(t, silent)
	w.create("a")
	w.must(w.append("a", userSays("one")))
	fork, err := w.Fork(t.Context(), api.Fork{Parent: "a", ID: "b"})
	w.must(err)
	before := w.head("a").Head
	for _, tt := range []struct {
		r    api.Erase
		kind tapedeck.Kind
		want string
	}{
		{api.Erase{Session: "a"}, tapedeck.Invalid, "which events"},
		{api.Erase{Session: "a", All: true, Events: span(0, 1)}, tapedeck.Invalid, "which events"},
		{api.Erase{Session: "a", Events: span(1, 1)}, tapedeck.Invalid, "no events in it"},
		{api.Erase{Session: "a", Events: []tapedeck.OffsetRange{{From: 0, To: 2}, {From: 1, To: 0}}}, tapedeck.Invalid, "no events in it"},
		{api.Erase{Session: "a", Events: span(-1, 1)}, tapedeck.Invalid, "no events in it"},
		{api.Erase{Session: "a", Events: span(0, 3)}, tapedeck.Invalid, "has 2 events; it has none at offset"},
		{api.Erase{Session: "a", Events: span(0, 1<<62)}, tapedeck.Invalid, "has 2 events; it has none at offset"},
		{api.Erase{Session: fork.ID, Events: span(1, 3)}, tapedeck.Invalid, `erase them in session a`},
		{api.Erase{Session: "nobody", All: true}, tapedeck.NotFound, "no session"},
		{api.Erase{Session: "a", All: true, Reason: "\x1b[2J"}, tapedeck.Invalid, "control character"},
		{api.Erase{Session: "a", Events: make([]tapedeck.OffsetRange, 10_001)}, tapedeck.TooLarge, "10001 ranges"},
	} {
		_, err := w.Erase(t.Context(), tt.r)
		refuses(t, err, tt.kind, tt.want)
	}
	if s := w.head("a"); s.Head != before {
		t.Errorf("a refusal has appended something")
	}
}

// TestEraseWhileRunning: only events before the run can be erased.
func TestEraseWhileRunning(t *testing.T) {
	w := newWorld(t, silent)
	w.create("a")
	w.must(w.append("a", userSays("one"), `RUN_STARTED {"threadId":"main","runId":"r"}`))
	_, err := w.Erase(t.Context(), api.Erase{Session: "a", All: true})
	refuses(t, err, tapedeck.Conflict, "cancel it first")
	w.erase(api.Erase{Session: "a", Events: span(0, 2)})
	if len(w.head("a").Runs) != 1 {
		t.Error("the run is missing")
	}
	_, err = w.Cancel(t.Context(), "a", "")
	w.must(err)
	w.erase(api.Erase{Session: "a", All: true})
	if s := w.head("a"); s.Status != tapedeck.StatusCancelled || s.Resumable == nil || !*s.Resumable {
		t.Errorf("the status: %+v", s)
	}
}

// The request that started a run is a part of it, though it is below RUN_STARTED: the
// agent has read it and may repeat it.
func TestEraseRequestOfRun(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		_, err := w.Erase(w.Context(), api.Erase{Session: "s", Events: span(1, 2)})
		refuses(w, err, tapedeck.Conflict, "cancel it first")
		_, err = w.Cancel(w.Context(), "s", "")
		w.must(err)
		w.erase(api.Erase{Session: "s", Events: span(1, 2)})
	})
}

func TestEraseClosed(t *testing.T) {
	w := newWorld(t, silent)
	w.create("a")
	w.must(w.append("a", userSays("one")))
	w.must(w.Close(t.Context(), "a", ""))
	w.erase(api.Erase{Session: "a", All: true})
	if s := w.head("a"); !s.Closed || strings.Contains(w.text("a"), "one") {
		t.Errorf("closed: %t, %s", s.Closed, w.text("a"))
	}
}

// TestEraseForgets: derived data of the events must be removed before the erasure
// returns, also in forks. If that fails, the erasure reports it.
func TestEraseForgets(t *testing.T) {
	w := newWorld(t, silent)
	var forgotten []string
	var fail error
	w.store.Observe(tapedeck.Observer{Erased: func(_ context.Context, session string, forks []string) error {
		forgotten = append(append(forgotten, session), forks...)
		return fail
	}})
	w.create("a")
	w.must(w.append("a", userSays("one")))
	_, err := w.Fork(t.Context(), api.Fork{Parent: "a", ID: "b"})
	w.must(err)
	_, err = w.Fork(t.Context(), api.Fork{Parent: "b", ID: "c"})
	w.must(err)
	done := w.erase(api.Erase{Session: "a", All: true})
	if want := []string{"a", "b", "c"}; !slices.Equal(forgotten, want) || !slices.Equal(done.Forks, want[1:]) {
		t.Errorf("erased: %v, forks: %v", forgotten, done.Forks)
	}
	if strings.Contains(w.text("c"), "one") {
		t.Error("a fork of a fork still has it")
	}
	fail = tapedeck.Errorf(tapedeck.Unavailable, "no")
	head := w.head("c").Head
	_, err = w.Erase(t.Context(), api.Erase{Session: "c", All: true})
	refuses(t, err, tapedeck.Unavailable, "are erased, but")
	if !errors.Is(err, fail) {
		t.Errorf("%v does not wrap the error of the observer", err)
	}
	if w.head("c").Head != head+1 {
		t.Error("there is no receipt of the erasure")
	}
}

func TestEraseFailing(t *testing.T) {
	w := newWorld(t, silent)
	w.create("a")
	w.must(w.append("a", userSays("one")))
	w.down.Store(true)
	_, err := w.Erase(t.Context(), api.Erase{Session: "a", All: true})
	refuses(t, err, tapedeck.Unavailable, "could not be stored")
	w.down.Store(false)
	if s := w.text("a"); !strings.Contains(s, "one") {
		t.Errorf("the log: %s", s)
	}
	w.must(w.append("a", userSays("two")))
}

// TestMergedRanges compares the ranges with a set of offsets.
func TestMergedRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[int64]bool{}
		var ranges []tapedeck.OffsetRange
		for range rapid.IntRange(1, 6).Draw(t, "ranges") {
			from := rapid.Int64Range(0, 20).Draw(t, "from")
			to := from + rapid.Int64Range(1, 6).Draw(t, "length")
			ranges = append(ranges, tapedeck.OffsetRange{From: from, To: to})
			for o := from; o < to; o++ {
				want[o] = true
			}
		}
		got, last := map[int64]bool{}, int64(-1)
		for _, r := range engine.Merged(ranges) {
			if r.From <= last || r.To <= r.From {
				t.Fatalf("%v became %v", ranges, engine.Merged(ranges))
			}
			for last = r.From; last < r.To; last++ {
				got[last] = true
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}
