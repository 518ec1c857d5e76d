package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

func TestFork(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		p, err := w.Create(w.Context(), api.NewSession{ID: "p", Title: "the title", Owner: "ada", Agent: "bot"})
		w.must(err)
		w.start("p")
		synctest.Wait()
		const inMessage = 6 // after the first delta of a message
		f, err := w.Fork(w.Context(), api.Fork{ID: "f", Parent: "p", At: new(int64(inMessage))})
		w.must(err)
		if f.Parent != "p" || f.ForkedAt != inMessage || f.Head != inMessage+1 || f.Title != p.Title || f.Owner != "ada" || f.Agent != "bot" || len(f.Runs) > 0 || f.Status != tapedeck.StatusInterrupted {
			w.Errorf("got %+v", f)
		}
		first := w.events("f")[inMessage]
		if first.Type != tapedeck.SessionForked || string(first.Data) != `{"session":"f","parent":"p","at":6,"status":"interrupted","title":"the title","owner":"ada","agent":"bot"}` {
			w.Errorf("its first own event is %s %s", first.Type, first.Data)
		}
		refuses(w, w.append("f", `TEXT_MESSAGE_END {"messageId":"m"}`), tapedeck.Conflict, "send RUN_STARTED first")
		_, err = w.Cancel(w.Context(), "f", "")
		refuses(w, err, tapedeck.Conflict, "nothing is running")

		w.start("f") // at once, while the parent's runs
		synctest.Wait()
		c, err := w.Cancel(w.Context(), "f", "")
		if err != nil || c.Offset != w.head("f").Head-1 {
			w.Errorf("got %+v, %v", c, err)
		}
		if s := w.head("p"); len(s.Runs) != 1 || s.Head != 7 {
			w.Errorf("the parent has changed: %+v", s)
		}
	})
}

func TestForkRefusals(t *testing.T) {
	w := newWorld(t, silent)
	w.create("p")
	for _, tt := range []struct {
		id, parent string
		at         int64
		kind       tapedeck.Kind
		want       string
	}{
		{"p", "p", 1, tapedeck.Conflict, "session p exists | choose another id"},
		{"f", "none", 0, tapedeck.NotFound, "no session"},
		{"f", "p", 2, tapedeck.Invalid, "cannot be forked at 2"},
		{"f", "p", -1, tapedeck.Invalid, "an offset from 0"},
		{"../f", "p", 1, tapedeck.Invalid, "must begin with"},
	} {
		_, err := w.Fork(t.Context(), api.Fork{ID: tt.id, Parent: tt.parent, At: &tt.at})
		refuses(t, err, tt.kind, tt.want)
	}
	f, err := w.Fork(t.Context(), api.Fork{Parent: "p", At: new(int64)})
	if err != nil || f.ID == "" || f.Head != 1 {
		t.Errorf("got %+v, %v", f, err)
	}
}

// A fork inherits title, owner and labels of its parent, unless the request sets
// others. A copy is marked as one. A closed session can be forked.
func TestForkMembers(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		_, err := w.Create(w.Context(), api.NewSession{ID: "p", Title: "One", Owner: "ada", Agent: "bot", Labels: map[string]string{"a": "b"}})
		w.must(err)
		p := w.tape("p")
		p.play("task a; task wait; cancel wait; close")
		f, err := w.Fork(w.Context(), api.Fork{Parent: "p", Actor: "user:bob"})
		if err != nil || f.Title != "One" || f.Owner != "ada" || f.Labels["a"] != "b" || f.Copy || f.Closed {
			t.Errorf("got %+v, %v", f, err)
		}
		if f.Status != tapedeck.StatusCancelled || f.Resumable == nil || !*f.Resumable {
			t.Errorf("its status is %s, resumable %v", f.Status, f.Resumable)
		}
		if log := w.log(f.ID); log[len(log)-1].Actor != "user:bob" {
			t.Errorf("made by %q", log[len(log)-1].Actor)
		}
		c, err := w.Fork(w.Context(), api.Fork{Parent: "p", ID: "c", Title: new(""), Owner: "bob", Copy: true, At: new(int64(8))})
		if err != nil || c.Title != "" || c.Owner != "bob" || !c.Copy || c.Status != tapedeck.StatusComplete {
			t.Errorf("got %+v, %v", c, err)
		}
		w.tape("c").play("task b")
	})
}

// A deleted parent cannot be forked, also if its forks still need it.
func TestForkOfTheDeleted(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("p")
		p := w.tape("p")
		p.play("task a; clear; fork f at 9")
		w.must(w.Delete(w.Context(), "p"))
		_, err := w.Fork(w.Context(), api.Fork{Parent: "p"})
		refuses(t, err, tapedeck.Conflict, "session p was deleted and cannot be forked")
		p.play("undo; fork g at 11") // the inherited events stay, and so do the links
		if got := p.shown(); got != "main: a, re a {a}" {
			t.Error(got)
		}
		_, err = w.Fork(w.Context(), api.Fork{Parent: "f", Title: new("\x00")})
		refuses(t, err, tapedeck.Invalid, "the title has a control")
		_, err = w.Fork(w.Context(), api.Fork{Parent: "f", Actor: "\x00"})
		refuses(t, err, tapedeck.Invalid, "the actor has a control")
	})
}
