package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
)

func TestFork(t *testing.T) {
	inBubble(t, chatty, func(w *world) {
		p, err := w.Create(w.Context(), tapedeck.NewSession{ID: "p", Title: "the title", Owner: "ada", Agent: "bot"})
		w.must(err)
		w.start("p")
		synctest.Wait()
		const inMessage = 6 // after the first delta of a message
		f, err := w.Fork(w.Context(), "f", "p", inMessage)
		w.must(err)
		if f.Parent != "p" || f.ForkedAt != inMessage || f.Head != inMessage+1 || f.Title != p.Title || f.Owner != "ada" || f.Agent != "bot" || len(f.Runs) > 0 {
			w.Errorf("got %+v", f)
		}
		first := w.events("f")[inMessage]
		if first.Type != tapedeck.SessionForked || string(first.Data) != `{"agent":"bot","at":6,"owner":"ada","parent":"p","title":"the title"}` {
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
		_, err := w.Fork(t.Context(), tt.id, tt.parent, tt.at)
		refuses(t, err, tt.kind, tt.want)
	}
	f, err := w.Fork(t.Context(), "", "p", 0)
	if err != nil || f.ID == "" || f.Head != 1 {
		t.Errorf("got %+v, %v", f, err)
	}
}
