package engine_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

func TestCreate(t *testing.T) {
	w := newWorld(t, silent)
	s, err := w.Create(t.Context(), api.NewSession{
		Title: "Tëst <b>", Owner: "ada", Agent: "mute", Actor: "user:ada",
		Labels: map[string]string{"a.b": "c"}, State: json.RawMessage(`{"n":1}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Title != "Tëst <b>" || s.Owner != "ada" || s.Agent != "mute" || s.Labels["a.b"] != "c" || s.Head != 1 || s.Status != tapedeck.StatusIdle {
		t.Errorf("got %+v", s)
	}
	if ev := w.events(s.ID)[0]; ev.Type != tapedeck.SessionCreated || ev.Actor != "user:ada" || !strings.Contains(string(ev.Data), `"state":{"n":1}`) {
		t.Errorf("first event: %s %s by %s", ev.Type, ev.Data, ev.Actor)
	}
	_, err = w.Create(t.Context(), api.NewSession{ID: s.ID})
	refuses(t, err, tapedeck.Conflict, "exists")
}

func TestCreateHostile(t *testing.T) {
	w := newWorld(t, silent)
	many := map[string]string{}
	for i := range 65 {
		many[strings.Repeat("x", i+1)] = ""
	}
	long := strings.Repeat("x", 4096)
	for _, tt := range []struct {
		n    api.NewSession
		kind tapedeck.Kind
		want string
	}{
		{api.NewSession{ID: "../etc"}, tapedeck.Invalid, "must begin with"},
		{api.NewSession{ID: "stream/x"}, tapedeck.Invalid, "not allowed"},
		{api.NewSession{ID: long}, tapedeck.Invalid, "4096 bytes"},
		{api.NewSession{ID: "a\x00"}, tapedeck.Invalid, "not allowed"},
		{api.NewSession{Title: long}, tapedeck.Invalid, "the title has 4096 bytes"},
		{api.NewSession{Title: "\xff"}, tapedeck.Invalid, "not valid UTF-8"},
		{api.NewSession{Title: "\x1b[2J"}, tapedeck.Invalid, "control character"},
		{api.NewSession{Owner: "a\nb"}, tapedeck.Invalid, "the owner has a control"},
		{api.NewSession{Actor: "\x00"}, tapedeck.Invalid, "the actor has a control"},
		{api.NewSession{Agent: "nobody"}, tapedeck.NotFound, "there are: bot mute"},
		{api.NewSession{Labels: many}, tapedeck.Invalid, "65 labels"},
		{api.NewSession{Labels: map[string]string{"": "x"}}, tapedeck.Invalid, "label's name is empty"},
		{api.NewSession{Labels: map[string]string{"a": "\n"}}, tapedeck.Invalid, "the label a has a control"},
		{api.NewSession{Labels: map[string]string{"share.all": "x"}}, tapedeck.Invalid, "share.all\" shares nothing"},
		{api.NewSession{Labels: map[string]string{"share.read": "ada ^b"}}, tapedeck.Invalid, "a subject in the label share.read"},
		{api.NewSession{State: json.RawMessage(`{`)}, tapedeck.Invalid, "state is not JSON"},
		{api.NewSession{State: json.RawMessage("\"\xff\"")}, tapedeck.Invalid, "UTF-8"},
	} {
		_, err := w.Create(t.Context(), tt.n)
		refuses(t, err, tt.kind, tt.want)
	}
	if list, _ := w.store.List(t.Context(), tapedeck.Filter{}); len(list.Sessions) > 0 {
		t.Errorf("something was made: %v", list)
	}
}

func TestRename(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	title, bad := "new", "\n"
	s, err := w.Rename(t.Context(), api.Rename{Session: "s", Title: &title, Labels: map[string]string{"k": "v"}, Actor: "user:ada"})
	if err != nil || s.Title != "new" || !maps.Equal(s.Labels, map[string]string{"k": "v"}) || s.Head != 2 {
		t.Fatalf("got %+v, %v", s, err)
	}
	s, err = w.Rename(t.Context(), api.Rename{Session: "s", Labels: map[string]string{}})
	if err != nil || s.Title != "new" || len(s.Labels) > 0 {
		t.Errorf("no labels any more: got %+v, %v", s, err)
	}
	_, err = w.Rename(t.Context(), api.Rename{Session: "s"})
	refuses(t, err, tapedeck.Invalid, "nothing to change")
	_, err = w.Rename(t.Context(), api.Rename{Session: "s", Title: &bad})
	refuses(t, err, tapedeck.Invalid, "the title has a control")
	_, err = w.Rename(t.Context(), api.Rename{Session: "s", Labels: map[string]string{"../": ""}})
	refuses(t, err, tapedeck.Invalid, "label's name")
	_, err = w.Rename(t.Context(), api.Rename{Session: "s", Labels: map[string]string{"share.all": ""}})
	refuses(t, err, tapedeck.Invalid, "shares nothing")
	_, err = w.Rename(t.Context(), api.Rename{Session: "none", Title: &title})
	refuses(t, err, tapedeck.NotFound, "no session")
	if h := w.head("s").Head; h != 3 {
		t.Errorf("the head is %d, want 3", h)
	}
}

// TestChangeLabels: a change of one label keeps the others, also one that another client
// makes at the same moment.
func TestChangeLabels(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	change := func(name string, value *string) error {
		_, err := w.Rename(t.Context(), api.Rename{Session: "s", ChangeLabels: map[string]*string{name: value}})
		return err
	}
	yes, bad := "true", "\n"
	w.must(change("starred", &yes))
	w.store.before = func() { w.must(change("share.read", &yes)) }
	w.must(change("archived", &yes))
	if s := w.head("s"); !maps.Equal(s.Labels, map[string]string{"starred": yes, "share.read": yes, "archived": yes}) {
		t.Errorf("the labels are %v", s.Labels)
	}
	w.must(change("starred", nil))
	if s := w.head("s"); !maps.Equal(s.Labels, map[string]string{"share.read": yes, "archived": yes}) {
		t.Errorf("the labels are %v", s.Labels)
	}
	refuses(t, change("a", &bad), tapedeck.Invalid, "the label a has a control")
	refuses(t, change("share.all", &yes), tapedeck.Invalid, "shares nothing")
	w.must(change("share.all", nil)) // it may be from before
	_, err := w.Rename(t.Context(), api.Rename{Session: "s", Labels: map[string]string{}, ChangeLabels: map[string]*string{"a": &yes}})
	refuses(t, err, tapedeck.Invalid, "both")
	_, err = w.Rename(t.Context(), api.Rename{Session: "none", ChangeLabels: map[string]*string{"a": &yes}})
	refuses(t, err, tapedeck.NotFound, "no session")
}

func TestClose(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		w.must(w.append("s", `RUN_STARTED {"runId":"r"}`))
		refuses(w, w.Close(w.Context(), "s", ""), tapedeck.Conflict, "r is running in session s | cancel it first")
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Close: true, Events: parse(`message.added {"message":{"id":"u","role":"user","content":"x"}}`)})
		refuses(w, err, tapedeck.Conflict, "r is running") // an append that closes is no way around it
		w.must(w.append("s", `RUN_FINISHED {"runId":"r"}`))

		errs := make(chan error)
		for range 8 {
			go func() { errs <- w.Close(w.Context(), "s", "user:ada") }()
		}
		for range 8 {
			w.must(<-errs)
		}
		if ev, _ := w.end("s"); ev.Type != tapedeck.SessionClosed || ev.Offset != 3 || ev.Actor != "user:ada" {
			w.Errorf("last event: %+v", ev)
		}
		w.create("s2")
		w.store.before = func() { w.must(w.Close(w.Context(), "s2", "")) }
		w.must(w.Close(w.Context(), "s2", "")) // another call is faster
		refuses(w, w.append("s", `x.y {}`), tapedeck.Conflict, "closed")
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "go"})
		refuses(w, err, tapedeck.Conflict, "closed")
		refuses(w, w.Close(w.Context(), "none", ""), tapedeck.NotFound, "no session")
	})
}

func TestDelete(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		w.create("s")
		w.start("s")
		w.must(w.Delete(w.Context(), "s"))
		_, err := w.store.Head(w.Context(), "s")
		refuses(w, err, tapedeck.NotFound, "no session")
		refuses(w, w.Delete(w.Context(), "s"), tapedeck.NotFound, "no session")
		w.create("s") // its ledger is not that of the one before
		w.start("s")
		synctest.Wait()
		refuses(w, w.append("s", `TEXT_MESSAGE_END {"messageId":"m"}`), tapedeck.Conflict, "server that drives it")
	})
}

// An agent of a deleted session must not write to a recreated one, also if that has a run of the
// same id.
func TestDeletedUnderTheRun(t *testing.T) {
	for name, again := range map[string]bool{"a new one": false, "one with the same events": true} {
		t.Run(name, func(t *testing.T) {
			var next chan struct{}
			inBubble(t, func(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
				<-next
				say("plan.updated", `{"entries":[]}`)
				return nil
			}, func(w *world) {
				next = make(chan struct{})
				w.create("s")
				w.start("s")
				events := w.events("s")
				w.must(w.store.Delete(w.Context(), "s"))
				if !again {
					events = events[:1]
				}
				_, err := w.store.Create(w.Context(), tapedeck.Spec{ID: "s", Kind: tapedeck.KindSession, Events: events})
				w.must(err)
				close(next)
				synctest.Wait()
				if got, want := types(w.events("s")), types(events); got != want {
					w.Errorf("the new session has %s, want %s", got, want)
				}
			})
		})
	}
}

func TestStreamsAreNoSessions(t *testing.T) {
	w := newWorld(t, silent)
	_, err := w.store.Create(t.Context(), tapedeck.Spec{ID: "stream/x", Kind: tapedeck.KindStream, ContentType: "text/plain"})
	w.must(err)
	refuses(t, w.append("stream/x", "x.y {}"), tapedeck.NotFound, "no session")
	refuses(t, w.Close(t.Context(), "stream/x", ""), tapedeck.NotFound, "no session")
	refuses(t, w.Delete(t.Context(), "stream/x"), tapedeck.NotFound, "no session")
	_, err = w.Start(t.Context(), api.Task{Session: "stream/x", Text: "go"})
	refuses(t, err, tapedeck.NotFound, "no session")
	_, err = w.Cancel(t.Context(), "stream/x", "")
	refuses(t, err, tapedeck.NotFound, "no session")
	_, err = w.Fork(t.Context(), api.Fork{Parent: "stream/x"})
	refuses(t, err, tapedeck.NotFound, "no session")
}
