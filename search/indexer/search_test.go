package indexer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/search/indexer"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/view"
)

// A world is a store with an index that does not observe it.
type world struct {
	testing.TB
	tapedeck.Store
	*indexer.Index
	when time.Time // of the next event
}

type stores struct {
	name string
	open func(t testing.TB) (tapedeck.Store, func(indexer.Options) *indexer.Index)
}

var all = []stores{
	{"memory", func(t testing.TB) (tapedeck.Store, func(indexer.Options) *indexer.Index) {
		m := memory.New(memory.Options{})
		x, err := m.OpenIndex()
		if err != nil {
			t.Fatal(err)
		}
		return m, func(o indexer.Options) *indexer.Index { o.Index, o.Log = x, m; return indexer.New(o) }
	}},
	{"sqlite", func(t testing.TB) (tapedeck.Store, func(indexer.Options) *indexer.Index) {
		s, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		x, err := s.OpenIndex()
		if err != nil {
			t.Fatal(err)
		}
		return s, func(o indexer.Options) *indexer.Index { o.Index, o.Log = x, s; return indexer.New(o) }
	}},
}

// each runs a test on each store.
func each(t *testing.T, test func(w *world)) {
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			store, index := s.open(t)
			test(&world{TB: t, Store: store, Index: index(indexer.Options{Patience: time.Minute})})
		})
	}
}

func (w *world) make(id string, payloads ...payload.Payload) {
	w.Helper()
	events := make([]tapedeck.Event, len(payloads))
	for i, p := range payloads {
		events[i] = payload.NewEvent(p)
		if events[i].Invocation = ""; events[i].Type != tapedeck.SessionCreated {
			events[i].Invocation = "run"
		}
		w.when = w.when.Add(time.Second)
		events[i].Time = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(w.when.Sub(time.Time{}))
	}
	done, err := w.Create(w.Context(), tapedeck.Spec{ID: id, Kind: tapedeck.KindSession, Events: events})
	if err == nil && !done.New {
		_, err = w.Append(w.Context(), tapedeck.Append{Session: id, Events: events})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// finds expects that a search finds these hits, written as session/offset kind role.
func (w *world) finds(text string, want ...string) {
	w.Helper()
	f, err := w.Search(w.Context(), search.Query{Text: text})
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for _, h := range f.Hits {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s/%d %s %s", h.Session, h.Offset, h.Kind, h.Role)))
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" || f.Behind != 0 {
		w.Errorf("searching for %s, %d behind: %s", text, f.Behind, d)
	}
}

func said(id, text string) payload.Payload {
	return payload.MessageAdded{Message: payload.NewMessage(id, payload.RoleUser, text)}
}

func TestWhatIsFound(t *testing.T) {
	each(t, func(w *world) {
		call := payload.Message{ID: "m9", Role: payload.RoleAssistant, ToolCalls: []payload.ToolCall{
			{ID: "c9", Type: "function", Function: payload.FunctionCall{Name: "Grep", Arguments: `{"for":"mushroom\nnettle"}`}},
		}}
		w.make("a",
			payload.SessionCreated{Title: "Apple pie"},
			said("m1", "banana bread"),
			payload.RunStarted{ThreadID: "main", RunID: "run"},
			payload.ReasoningMessageStart{MessageID: "m2", Role: payload.RoleReasoning},
			payload.ReasoningMessageContent{MessageID: "m2", Delta: "cherry"},
			payload.TextMessageStart{MessageID: "m2"},
			payload.ReasoningMessageEnd{MessageID: "m2"},
			payload.TextMessageContent{MessageID: "m2", Delta: "dragon"},
			payload.ToolCallStart{ToolCallID: "c", ToolCallName: "Read"},
			payload.TextMessageContent{MessageID: "m2", Delta: "fruit"},
			payload.ToolCallArgs{ToolCallID: "c", Delta: `{"path":"elder`},
			payload.ToolCallArgs{ToolCallID: "c", Delta: `berry\n\u81ea\u884c"}`},
			payload.ToolCallEnd{ToolCallID: "c"},
			payload.ToolCallResult{MessageID: "r", ToolCallID: "c", Content: []byte(`"fig"`)},
			payload.ToolCallResult{MessageID: "r2", ToolCallID: "c", Content: []byte(`"{\"out\":\"kiwi\\nlemon\"}"`)},
			payload.ToolCallResult{MessageID: "r3", ToolCallID: "c", Content: []byte(`[{"type":"text","text":"mango"},{"type":"text","text":"olive"}]`)},
			payload.TextMessageEnd{MessageID: "m2"},
			payload.MessageAdded{Message: call},
			payload.Custom{Name: "x", Value: []byte(`"grape"`)},
			payload.TextMessageStart{MessageID: "m3"},
			payload.TextMessageContent{MessageID: "m3", Delta: "honeydew"},
		)
		w.finds("apple", "a/0 title")
		w.finds("banana", "a/1 message user")
		w.finds("cherry", "a/3 message reasoning")
		w.finds("dragonfruit", "a/5 message assistant")
		w.finds("read elderberry", "a/8 tool")
		w.finds("fig", "a/13 tool tool")
		w.finds("自行", "a/8 tool")
		w.finds("lemon", "a/14 tool tool")
		w.finds("olive", "a/15 tool tool")
		w.finds("mushroom nettle", "a/17 tool")
		w.finds("grape")
		w.finds("honeydew") // it has not ended
		w.make("a", payload.RunError{Message: "it broke"})
		w.finds("honeydew", "a/19 message assistant")
		w.finds("banana", "a/1 message user")
	})
}

func TestRenamed(t *testing.T) {
	each(t, func(w *world) {
		w.make("a", payload.SessionCreated{Title: "first name"})
		w.finds("name", "a/0 title")
		title, none := "second name", ""
		w.make("a", payload.SessionRenamed{Title: &title})
		w.finds("name", "a/1 title")
		w.make("a", payload.SessionRenamed{Labels: map[string]string{"name": "x"}}, payload.SessionRenamed{Title: &none})
		w.finds("name")
	})
}

// TestForksDoNotRepeat: inherited events are found once, in the parent.
func TestForksDoNotRepeat(t *testing.T) {
	each(t, func(w *world) {
		w.make("a", said("m1", "word"), said("m2", "other"))
		at := int64(1)
		if _, err := w.Create(t.Context(), tapedeck.Spec{ID: "b", Parent: "a", ForkAt: &at, Events: []tapedeck.Event{{Type: tapedeck.SessionForked}}}); err != nil {
			t.Fatal(err)
		}
		w.make("b", said("m3", "word again"))
		w.finds("word", "a/0 message user", "b/2 message user")
	})
}

// TestErasedIsNotFound: a search does not find erased text.
func TestErasedIsNotFound(t *testing.T) {
	each(t, func(w *world) {
		w.Observe(w.Observer())
		w.make("a", payload.SessionCreated{Title: "the word"}, said("m1", "word"), said("m2", "other"))
		w.finds("word", "a/0 title", "a/1 message user")
		ranges := []tapedeck.OffsetRange{{From: 0, To: 2}}
		if _, err := w.Erase(t.Context(), tapedeck.Erasure{
			Session: "a", Ranges: ranges, Events: []tapedeck.Event{payload.NewEvent(payload.SessionRedacted{Offsets: ranges})},
		}); err != nil {
			t.Fatal(err)
		}
		w.finds("word")
		w.finds("other", "a/2 message user")
	})
}

// TestErasedWhileSomethingIsOpen: an erasure also drops incomplete documents in memory;
// otherwise the rest of the session would not be indexed again.
func TestErasedWhileSomethingIsOpen(t *testing.T) {
	each(t, func(w *world) {
		w.Observe(w.Observer())
		w.make("a", said("m1", "word"), said("m2", "other"), payload.TextMessageStart{MessageID: "m"}, payload.TextMessageContent{MessageID: "m", Delta: "more"})
		w.finds("other", "a/1 message user")
		ranges := []tapedeck.OffsetRange{{From: 0, To: 1}}
		if _, err := w.Erase(t.Context(), tapedeck.Erasure{
			Session: "a", Ranges: ranges, Events: []tapedeck.Event{payload.NewEvent(payload.SessionRedacted{Offsets: ranges})},
		}); err != nil {
			t.Fatal(err)
		}
		w.finds("word")
		w.finds("other", "a/1 message user")
		w.make("a", payload.TextMessageEnd{MessageID: "m"})
		w.finds("more", "a/2 message assistant")
	})
}

// TestErasedWithoutBeingTold: the index was not notified of an erasure, because the
// process died before. It finds the receipt in the log.
func TestErasedWithoutBeingTold(t *testing.T) {
	each(t, func(w *world) {
		w.make("empty")
		w.make("a", said("m1", "word"), said("m2", "other"))
		w.finds("word", "a/0 message user")
		for range 2 {
			ranges := []tapedeck.OffsetRange{{From: 0, To: 1}}
			if _, err := w.Erase(t.Context(), tapedeck.Erasure{
				Session: "a", Ranges: ranges, Events: []tapedeck.Event{payload.NewEvent(payload.SessionRedacted{Offsets: ranges})},
			}); err != nil {
				t.Fatal(err)
			}
			w.finds("word")
			w.finds("other", "a/1 message user")
		}
		w.make("a", said("m3", "word"))
		w.finds("word", "a/4 message user")
	})
}

// TestLongSessions: a long session is indexed in parts. Messages that span parts are
// complete, and a message that never ends does not keep the rest from being found.
func TestLongSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long with the race detector")
	}
	each(t, func(w *world) {
		var some []payload.Payload
		for i := range 4998 {
			some = append(some, said(fmt.Sprint("x", i), "x"))
		}
		w.make("a", some...)
		w.make("a", payload.TextMessageStart{MessageID: "m"})
		for range 12 {
			w.make("a", payload.TextMessageContent{MessageID: "m", Delta: "wo"}, payload.TextMessageContent{MessageID: "m", Delta: "rd "})
			w.make("a", some...)
		}
		w.make("a", said("last", "needle"))
		w.finds("needle", fmt.Sprintf("a/%d message user", 4998+1+12*(4998+2)))
		w.finds("word", "a/4998 message assistant")
	})
}

// A reader fails to read one session.
type reader struct {
	tapedeck.Store
	err error
}

func (r *reader) Read(ctx context.Context, session string, rng tapedeck.Range) (tapedeck.Page, error) {
	if session == "broken" && r.err != nil {
		return tapedeck.Page{}, r.err
	}
	return r.Store.Read(ctx, session, rng)
}

// TestUnreadable: a damaged session does not keep others from being found. If the store
// is unavailable, the index tries again.
func TestUnreadable(t *testing.T) {
	m := memory.New(memory.Options{})
	x, _ := m.OpenIndex()
	r := &reader{Store: m, err: tapedeck.Errorf(tapedeck.Internal, "it is damaged")}
	w := &world{TB: t, Store: m, Index: indexer.New(indexer.Options{Index: x, Log: r})}
	w.make("a", said("m", "word"))
	w.make("broken", said("m", "word"))
	w.finds("word", "a/0 message user")

	r.err = tapedeck.Errorf(tapedeck.Unavailable, "it is busy")
	w.make("broken", said("m", "word"))
	if err := w.CatchUp(t.Context()); !errors.Is(err, r.err) {
		t.Errorf("got %v", err)
	}
	if f, err := w.Search(t.Context(), search.Query{Text: "word"}); err != nil || f.Behind != 1 || len(f.Hits) != 1 {
		t.Errorf("behind: %+v, %v", f, err)
	}
}

// past has a timeline in which all events below an offset were reverted.
type past int64

func (p past) Timeline(context.Context, string, int64) (*view.Timeline, error) {
	return view.NewTimeline([]tapedeck.Jump{{Offset: int64(p)}}), nil
}

func TestRewound(t *testing.T) {
	m := memory.New(memory.Options{})
	x, _ := m.OpenIndex()
	w := &world{TB: t, Store: m, Index: indexer.New(indexer.Options{Index: x, Log: m, Timelines: past(2)})}
	w.make("a", payload.SessionCreated{Title: "word"}, said("m1", "word"), payload.SessionCleared{}, said("m2", "word"))
	f, err := w.Search(t.Context(), search.Query{Text: "word"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]bool{}
	for _, h := range f.Hits {
		got[h.Offset] = h.Rewound
	}
	if d := cmp.Diff(map[int64]bool{0: false, 1: true, 3: false}, got); d != "" {
		t.Error(d)
	}
}

func TestSearchInvalid(t *testing.T) {
	each(t, func(w *world) {
		for _, q := range []search.Query{{}, {Text: "-x"}, {Text: "x", Kind: "none"}, {Text: "x", Cursor: "y"}} {
			if _, err := w.Search(t.Context(), q); tapedeck.KindOf(err) != tapedeck.Invalid {
				t.Errorf("%+v: %v", q, err)
			}
		}
	})
}

// TestRun: appended events are indexed in the background after Options.Delay.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		x, _ := m.OpenIndex()
		w := &world{TB: t, Store: m, Index: indexer.New(indexer.Options{Index: x, Log: m, Delay: time.Second})}
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		behind := func(want int) {
			t.Helper()
			synctest.Wait()
			if _, n, err := x.Unindexed(ctx, 0); n != want || err != nil {
				t.Errorf("%d sessions are behind, want %d (%v)", n, want, err)
			}
		}
		behind(0)
		for range 3 {
			w.make("a", said("m", "word"))
			w.Changed()
			w.Changed()
			behind(1)
			time.Sleep(time.Second) // in the bubble
			behind(0)
		}
		cancel()
		synctest.Wait()
	})
}
