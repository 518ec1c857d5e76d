package engine_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/exchange"
	"github.com/tapedeck/tapedeck/payload"
)

// A keeper is an agent that keeps its own conversation, and links it in its first
// run. It fails if its task is "fail".
type keeper struct {
	mu    sync.Mutex
	given []string // the links of its runs, "" for none
	id    string   // of its conversation
	can   tapedeck.Capabilities
	not   error
}

func (k *keeper) Capabilities() tapedeck.Capabilities { return k.can }
func (k *keeper) Available() error                    { return k.not }

func (k *keeper) Run(_ context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		k.mu.Lock()
		given := ""
		if in.Link != nil {
			given = in.Link.NativeID
		}
		k.given = append(k.given, given)
		k.mu.Unlock()
		if in.Link == nil {
			yield(payload.NewEvent(payload.AgentLinked{Runner: "keeper", NativeID: k.id}), nil)
		}
	}
}

func (k *keeper) last() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.given[len(k.given)-1]
}

// inKeeping runs a test with an agent "bot" that keeps its conversation, and an
// agent "mute" that sends nothing.
func inKeeping(t *testing.T, id string, test func(w *world, k *keeper)) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{id: id, can: tapedeck.Capabilities{Resume: true}}
		test(newWorld(t, nil, func(o *engine.Options) {
			o.Agents[0].Runner = k
			o.Agents[1].Runner = talker(func(context.Context, tapedeck.Invocation, func(string, string) bool) error { return nil })
		}), k)
	})
}

func (w *world) turn(session, agent, thread string) api.Started {
	w.Helper()
	s, err := w.Start(w.Context(), api.Task{Session: session, Agent: agent, Thread: thread, Text: "go"})
	w.must(err)
	synctest.Wait()
	return s
}

func TestLink(t *testing.T) {
	for name, tt := range map[string]struct {
		between func(w *world, first api.Started) (session string)
		id      string
		want    bool
	}{
		"nothing between": {want: true},
		"more of its own": {want: true, between: func(w *world, _ api.Started) string {
			w.turn("s", "bot", "")
			return "s"
		}},
		"another agent": {between: func(w *world, _ api.Started) string {
			w.turn("s", "mute", "")
			return "s"
		}},
		"another agent elsewhere": {want: true, between: func(w *world, _ api.Started) string {
			w.turn("s", "mute", "side")
			return "s"
		}},
		"a message of someone else": {between: func(w *world, _ api.Started) string {
			w.must(w.append("s", `message.added {"message":{"id":"m","role":"user","content":"psst"}}`))
			return "s"
		}},
		"a rewind of later events": {between: func(w *world, _ api.Started) string {
			second := w.turn("s", "bot", "")
			_, err := w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: second.Invocation})
			w.must(err)
			return "s"
		}},
		"a rewind that was undone": {between: func(w *world, first api.Started) string {
			r, err := w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: first.Invocation})
			w.must(err)
			_, err = w.Undo(w.Context(), api.Undo{Session: "s", Marker: r.Marker})
			w.must(err)
			return "s"
		}},
		"a rewind elsewhere": {want: true, between: func(w *world, _ api.Started) string {
			w.turn("s", "mute", "side")
			_, err := w.Clear(w.Context(), api.Clear{Session: "s", Thread: "side"})
			w.must(err)
			return "s"
		}},
		"a clear": {between: func(w *world, _ api.Started) string {
			_, err := w.Clear(w.Context(), api.Clear{Session: "s"})
			w.must(err)
			return "s"
		}},
		"a fork": {between: func(w *world, _ api.Started) string {
			_, err := w.Fork(w.Context(), api.Fork{Parent: "s", ID: "f"})
			w.must(err)
			return "f"
		}},
		"an id like an option": {id: "--force"},
	} {
		t.Run(name, func(t *testing.T) {
			inKeeping(t, strings.TrimSpace(tt.id + " native")[:6], func(w *world, k *keeper) {
				w.create("s")
				first := w.turn("s", "bot", "")
				session := "s"
				if tt.between != nil {
					session = tt.between(w, first)
				}
				w.turn(session, "bot", "")
				if got := k.last() != ""; got != tt.want {
					t.Errorf("it was given the link %q", k.last())
				}
			})
		})
	}
}

// A fork that has a link of its own continues with that.
func TestLinkOfAFork(t *testing.T) {
	inKeeping(t, "native", func(w *world, k *keeper) {
		w.create("s")
		w.turn("s", "bot", "")
		_, err := w.Fork(w.Context(), api.Fork{Parent: "s", ID: "f"})
		w.must(err)
		for range 3 {
			w.turn("f", "bot", "")
		}
		if want := []string{"", "", "native", "native"}; !slices.Equal(k.given, want) {
			t.Errorf("the links were %q", k.given)
		}
	})
}

// A session that is imported has no link: the file may name the conversation of another user.
func TestLinkOfAnImport(t *testing.T) {
	inKeeping(t, "native", func(w *world, k *keeper) {
		w.create("s")
		w.turn("s", "bot", "")
		done, err := w.Import(w.Context(), api.ImportRequest{Format: exchange.NDJSON}, strings.NewReader(ndjson(w, w.Engine, "s")))
		w.must(err)
		for range 2 {
			w.turn(done.Sessions[0], "bot", "")
		}
		if want := []string{"", "", "native"}; !slices.Equal(k.given, want) {
			t.Errorf("the links were %q", k.given)
		}
	})
}

// Clients may not say which program an agent runs, or which conversation it has.
func TestForgedAgent(t *testing.T) {
	inBubble(t, silent, func(w *world) {
		w.create("s")
		refuses(w, w.append("s", `agent.started {"pid":4711,"started":"1","host":"h"}`), tapedeck.Invalid, "agent.started cannot be appended")
		refuses(w, w.append("s", `agent.linked {"runner":"bot","nativeId":"x"}`), tapedeck.Invalid, "agent.linked cannot be appended")
		run := w.start("s")
		for _, line := range []string{
			`permission.requested {"id":"p","options":[]}`, `instance.started {"id":"i"}`,
		} {
			events := parse(line)
			events[0].Invocation = run.Invocation
			_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: events})
			refuses(w, err, tapedeck.Conflict, "cannot be a part of it")
		}
	})
}

func TestCapabilities(t *testing.T) {
	inKeeping(t, "native", func(w *world, k *keeper) {
		k.not = tapedeck.Errorf(tapedeck.Unavailable, "keeper is not installed").WithHint("install it")
		agents := w.Agents()
		if a := agents[0]; a.Capabilities == nil || !a.Capabilities.Resume || a.Unavailable != "keeper is not installed; install it" {
			t.Errorf("got %+v", a)
		}
		if a := agents[1]; a.Capabilities != nil || a.Unavailable != "" {
			t.Errorf("got %+v", a)
		}
		w.create("s")
		_, err := w.Start(t.Context(), api.Task{Session: "s", Text: "go"})
		refuses(t, err, tapedeck.Unavailable, "bot cannot run here: keeper is not installed")
		if w.head("s").Head != 1 {
			t.Error("it has begun")
		}
		k.not = errors.New("/secret/path")
		if a := w.Agents()[0]; a.Unavailable == "" || strings.Contains(a.Unavailable, "secret") {
			t.Errorf("got %+v", a)
		}
	})
}

func TestFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		w := newWorld(t, func(_ context.Context, in tapedeck.Invocation, _ func(string, string) bool) error {
			got = append(got, in.Folder)
			return nil
		}, func(o *engine.Options) {
			o.Agents[0].Folder = func(session, _ string) (string, error) {
				if session == "bad" {
					return "", tapedeck.Errorf(tapedeck.Unavailable, "the folder cannot be made")
				}
				return "/work/" + session, nil
			}
		})
		w.create("s")
		w.turn("s", "bot", "")
		w.create("bad")
		_, err := w.Start(t.Context(), api.Task{Session: "bad", Text: "go"})
		refuses(t, err, tapedeck.Unavailable, "cannot be made")
		if w.head("bad").Head != 1 || !slices.Equal(got, []string{"/work/s"}) {
			t.Errorf("the folders were %q", got)
		}
	})
}
