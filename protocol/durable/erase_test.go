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

// A readStore does something right after it has read a page that has events.
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

// A shredder is a door with session s, in whose state is a secret, its fork f,
// and what erases the secret as an engine does.
func shredder(t *testing.T) (o durable.Options, store *readStore, erase func()) {
	t.Helper()
	store = &readStore{Store: newMemory()}
	o = options(store)
	store.Observe(o.Views.(*projection.Projections).Observer())
	door := durable.New(o)
	must(t, 201, door, "PUT", "sessions/s", "")
	run := `[{"type":"RUN_STARTED","invocation":"i","data":{"threadId":"main","runId":"i"}},
		{"type":"STATE_SNAPSHOT","invocation":"i","data":{"snapshot":{"password":"secret"}}},
		{"type":"RUN_FINISHED","invocation":"i","data":{"threadId":"main","runId":"i"}}]`
	must(t, 204, door, "POST", "sessions/s", run, asJSON...)
	if _, err := o.Fork(t.Context(), "f", "s", 4); err != nil {
		t.Fatal(err)
	}
	ranges := []tapedeck.OffsetRange{{From: 2, To: 3}}
	return o, store, func() {
		_, _, err := o.Store.Erase(t.Context(), tapedeck.Erasure{
			Session: "s", Ranges: ranges, Events: []tapedeck.Event{payload.NewEvent(payload.SessionRedacted{Offsets: ranges})},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestErasedStateIsNotRemembered: what a view remembers for who reads on from
// where it stopped goes with what it was made of, in forks, too, and even if that
// had just been read.
func TestErasedStateIsNotRemembered(t *testing.T) {
	for _, id := range []string{"s", "f"} {
		for _, late := range []bool{false, true} {
			o, store, erase := shredder(t)
			door := durable.New(o)
			path := "sessions/" + id + "/views/state"
			if late {
				store.after = erase
			}
			resp := must(t, 200, door, "GET", path, "")
			if !strings.Contains(textOf(t, resp), "secret") {
				t.Fatal("the state was never shown")
			}
			if !late {
				erase()
			}
			must(t, 204, door, "POST", "sessions/"+id, `[{"type":"RUN_STARTED","invocation":"j","data":{"threadId":"main","runId":"j"}},
				{"type":"STATE_DELTA","invocation":"j","data":{"delta":[{"op":"add","path":"/n","value":1}]}}]`, asJSON...)
			got := textOf(t, must(t, 200, door, "GET", path+"?offset="+resp.Header.Get("Stream-Next-Offset"), ""))
			if !strings.Contains(got, `{"n":1}`) || strings.Contains(got, "secret") {
				t.Errorf("%s, late %t, goes on with %s", id, late, got)
			}
		}
	}
}

// TestErasedEventsAreNotShared: followers at the same position share what was
// encoded once, but not with who comes after it was erased. The head of a fork
// does not tell: the receipt is in its parent.
func TestErasedEventsAreNotShared(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o, store, erase := shredder(t)
			door := durable.New(o)
			if late {
				store.after = erase
			}
			early := watch(t, door, "sessions/f?offset=-1&live=sse")
			if !strings.Contains(early.take(), "secret") {
				t.Fatal("the event was never shown")
			}
			if !late {
				erase()
			}
			after := watch(t, door, "sessions/f?offset=-1&live=sse")
			if got := after.take(); !strings.Contains(got, "session.forked") || strings.Contains(got, "secret") {
				t.Errorf("late %t: who comes then gets %s", late, got)
			}
			early.leave()
			after.leave()
		})
	}
}

// TestErasedPagesAreModified: a client that asks whether what it has is still
// so is told that it is not.
func TestErasedPagesAreModified(t *testing.T) {
	o, _, erase := shredder(t)
	door := durable.New(o)
	tag := must(t, 200, door, "GET", "sessions/f", "").Header.Get("Etag")
	must(t, 304, door, "GET", "sessions/f", "", "If-None-Match", tag)
	erase()
	must(t, 200, door, "GET", "sessions/f", "", "If-None-Match", tag)
}
