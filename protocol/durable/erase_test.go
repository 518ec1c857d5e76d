package durable_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/durable"
)

// A readStore calls a function right after it has read a page with events.
type readStore struct {
	tapedeck.Store
	after func() // called once
}

func (s *readStore) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	p, err := s.Store.Read(ctx, session, r)
	if f := s.after; f != nil && len(p.Records) > 0 {
		s.after = nil
		f()
	}
	return p, err
}

// A shredder is a handler with session s, whose state has a secret, and its fork f. It can
// erase the secret as an engine does.
func shredder(t *testing.T) (o durable.Options, store *readStore, erase func()) {
	t.Helper()
	store = &readStore{Store: newMemory()}
	o = options(store)
	store.Observe(o.Views.(*projection.Projections).Observer())
	handler := durable.New(o)
	must(t, 201, handler, "PUT", "sessions/s", "")
	run := `[{"type":"RUN_STARTED","invocation":"i","data":{"threadId":"main","runId":"i"}},
		{"type":"STATE_SNAPSHOT","invocation":"i","data":{"snapshot":{"password":"secret"}}},
		{"type":"RUN_FINISHED","invocation":"i","data":{"threadId":"main","runId":"i"}}]`
	must(t, 204, handler, "POST", "sessions/s", run, asJSON...)
	if _, err := o.Fork(t.Context(), "f", "s", 4); err != nil {
		t.Fatal(err)
	}
	ranges := []tapedeck.OffsetRange{{From: 2, To: 3}}
	return o, store, func() {
		_, err := o.Store.Erase(t.Context(), tapedeck.Erasure{
			Session: "s", Ranges: ranges, Events: []tapedeck.Event{payload.NewEvent(payload.SessionRedacted{Offsets: ranges})},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestErasedStateIsNotRemembered: an erasure also discards the folds that a view keeps for
// the next read, in forks, too, and even if the erased events have just been read.
func TestErasedStateIsNotRemembered(t *testing.T) {
	for _, id := range []string{"s", "f"} {
		for _, late := range []bool{false, true} {
			o, store, erase := shredder(t)
			handler := durable.New(o)
			path := "sessions/" + id + "/views/state"
			if late {
				store.after = erase
			}
			resp := must(t, 200, handler, "GET", path, "")
			if !strings.Contains(textOf(t, resp), "secret") {
				t.Fatal("the state was never shown")
			}
			if !late {
				erase()
			}
			must(t, 204, handler, "POST", "sessions/"+id, `[{"type":"RUN_STARTED","invocation":"j","data":{"threadId":"main","runId":"j"}},
				{"type":"STATE_DELTA","invocation":"j","data":{"delta":[{"op":"add","path":"/n","value":1}]}}]`, asJSON...)
			got := textOf(t, must(t, 200, handler, "GET", path+"?offset="+resp.Header.Get("Stream-Next-Offset"), ""))
			if !strings.Contains(got, `{"n":1}`) || strings.Contains(got, "secret") {
				t.Errorf("%s, late %t, continues with %s", id, late, got)
			}
		}
	}
}

// TestErasedEventsAreNotShared: followers at the same offset share an encoded frame, but
// not with a follower that connects after an erasure. The head of a fork does not change
// by it: the receipt is in its parent.
func TestErasedEventsAreNotShared(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o, store, erase := shredder(t)
			handler := durable.New(o)
			if late {
				store.after = erase
			}
			early := watch(t, handler, "sessions/f?offset=-1&live=sse")
			if !strings.Contains(early.take(), "secret") {
				t.Fatal("the event was never shown")
			}
			if !late {
				erase()
			}
			after := watch(t, handler, "sessions/f?offset=-1&live=sse")
			if got := after.take(); !strings.Contains(got, "session.forked") || strings.Contains(got, "secret") {
				t.Errorf("late %t: who comes then gets %s", late, got)
			}
			early.leave()
			after.leave()
		})
	}
}

// TestErasedPagesAreModified: a client that asks whether its page has changed learns that it
// has.
func TestErasedPagesAreModified(t *testing.T) {
	o, _, erase := shredder(t)
	handler := durable.New(o)
	tag := must(t, 200, handler, "GET", "sessions/f", "").Header.Get("Etag")
	must(t, 304, handler, "GET", "sessions/f", "", "If-None-Match", tag)
	erase()
	must(t, 200, handler, "GET", "sessions/f", "", "If-None-Match", tag)
}
