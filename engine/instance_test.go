package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/view"
)

// Instance ids are unique among sessions, also between a fork or a copy and its
// parent. An agent that runs again in a fork keeps its instance.
func TestInstanceIDsAreUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			say("SUBAGENT_STARTED", `{"subagentRunId":"a-`+in.ID+`","name":"reviewer"}`)
			say("SUBAGENT_FINISHED", `{"subagentRunId":"a-`+in.ID+`"}`)
			say("TEXT_MESSAGE_START", `{"messageId":"m-`+in.ID+`","role":"assistant"}`)
			say("TEXT_MESSAGE_CONTENT", `{"messageId":"m-`+in.ID+`","delta":"x"}`)
			say("TEXT_MESSAGE_END", `{"messageId":"m-`+in.ID+`"}`)
			return nil
		})
		w.create("p")
		w.create("q")
		w.must(w.append("p", `message.added {"message":{"id":"u","role":"user","content":"hi"}}`))
		w.turn("p", "bot", "")
		w.turn("q", "bot", "")
		for _, f := range []api.Fork{{ID: "fork", Parent: "p"}, {ID: "copy", Parent: "p", Copy: true}, {ID: "again", Parent: "fork"}} {
			_, err := w.Fork(t.Context(), f)
			w.must(err)
		}
		w.turn("fork", "bot", "")
		w.turn("again", "bot", "")
		views, owner := projection.New(projection.Options{Store: w.store}), map[string]string{}
		for _, session := range []string{"p", "q", "fork", "copy", "again"} {
			all, err := views.Instances(t.Context(), session, -1)
			w.must(err)
			for _, i := range all {
				if other, taken := owner[i.ID]; taken {
					t.Errorf("%s of %s is also in %s", i.ID, session, other)
				}
				owner[i.ID] = session
				if i.Parent != "" && owner[i.Parent] != session {
					t.Errorf("the parent of %+v is not in %s", i, session)
				}
			}
			main := all[0]
			s, err := views.Snapshot(t.Context(), session, view.Query{})
			w.must(err)
			runs, said := 0, len(view.Context(s, main))
			for _, r := range s.Runs {
				if r.Thread == tapedeck.MainThread {
					runs++
				}
			}
			if main.Name != "bot" || int(main.Runs) != runs || said != len(view.Context(s, view.InThread(""))) {
				t.Errorf("%s: %+v has %d messages, its thread %d runs", session, main, said, runs)
			}
			for _, id := range main.FormerIDs {
				if found, ok := all.Find(id); !ok || found.ID != main.ID {
					t.Errorf("%s: the former id %s finds %+v", session, id, found)
				}
			}
		}
		if len(owner) != 12 {
			t.Errorf("there are %d instances: %v", len(owner), owner)
		}
	})
}

// TestInstanceAfterAnOverwrite: an agent keeps its instance in a fork or a copy that goes back
// below the offset at which it was forked, and its answers are in the context of that instance.
func TestInstanceAfterAnOverwrite(t *testing.T) {
	inBubble(t, echo, func(w *world) {
		w.create("p")
		w.turn("p", "bot", "")
		second := w.turn("p", "bot", "")
		forks := []api.Fork{{ID: "fork", Parent: "p"}, {ID: "copy", Parent: "p", Copy: true}, {ID: "again", Parent: "fork"}, {ID: "copied", Parent: "copy", Copy: true}}
		for _, f := range forks {
			_, err := w.Fork(w.Context(), f)
			w.must(err)
		}
		views, owner := projection.New(projection.Options{Store: w.store}), map[string]string{}
		for _, f := range forks {
			_, err := w.Overwrite(w.Context(), api.Overwrite{Session: f.ID, FromOffset: second.Offset})
			w.must(err)
			w.turn(f.ID, "bot", "")
			all, err := views.Instances(w.Context(), f.ID, -1)
			w.must(err)
			s, err := views.Snapshot(w.Context(), f.ID, view.Query{})
			w.must(err)
			if len(all) != 1 || owner[all[0].ID] != "" {
				t.Errorf("%s: the instances are %+v; others are %v", f.ID, all, owner)
				continue
			}
			owner[all[0].ID] = f.ID
			if got, want := len(view.Context(s, all[0])), len(view.Context(s, view.InThread(""))); got != want || want < 4 {
				t.Errorf("%s: the instance has %d messages of %d", f.ID, got, want)
			}
		}
	})
}

// Each agent in each thread is an instance. So is each agent that it starts; its
// parent is the instance that started it.
func TestInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
			say("SUBAGENT_STARTED", `{"subagentRunId":"a-`+in.ID+`","name":"reviewer"}`)
			say("SUBAGENT_STARTED", `{"subagentRunId":"b-`+in.ID+`","name":"reader","parentSubagentRunId":"a-`+in.ID+`"}`)
			say("SUBAGENT_FINISHED", `{"subagentRunId":"b-`+in.ID+`"}`)
			say("TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
			say("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"x"}`)
			say("TEXT_MESSAGE_END", `{"messageId":"m"}`)
			say("SUBAGENT_FINISHED", `{"subagentRunId":"a-`+in.ID+`"}`)
			return nil
		}, func(o *engine.Options) {
			o.Agents[1].Runner = talker(func(context.Context, tapedeck.Invocation, func(string, string) bool) error { return nil })
		})
		w.create("s")
		first := w.turn("s", "bot", "")
		w.turn("s", "mute", "")
		w.turn("s", "mute", "side")
		w.turn("s", "mute", "")
		all, err := projection.New(projection.Options{Store: w.store}).Instances(t.Context(), "s", -1)
		w.must(err)
		byName := map[string][]view.Instance{}
		for _, i := range all {
			byName[i.Name+" "+i.Thread] = append(byName[i.Name+" "+i.Thread], i)
		}
		if len(all) != 5 || len(byName) != 5 || byName["mute main"][0].Runs != 2 {
			t.Fatalf("the instances are %+v", all)
		}
		above := byName["bot main"][0].ID
		for _, name := range []string{"reviewer", "reader"} {
			i, n := view.Instance{}, 0
			for _, other := range all {
				if other.Name == name {
					i, n = other, n+1
				}
			}
			if n != 1 || !payload.IsSubThread(i.Thread) || i.Implicit || i.Parent != above || i.Status != tapedeck.StatusComplete {
				t.Errorf("%s is %+v, want the parent %s", name, i, above)
			}
			above = i.ID
		}
		for _, ev := range w.events("s") {
			want := byName["bot main"][0].ID
			if ev.Type == tapedeck.TextMessageContent { // the message says whose it is
				want = ""
			}
			if ev.Invocation == first.Invocation && ev.Actor == "agent:bot" && ev.Instance != want {
				t.Errorf("%s at offset %d is of %q", ev.Type, ev.Offset, ev.Instance)
			}
		}
	})
}
