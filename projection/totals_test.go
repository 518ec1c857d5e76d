package projection_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/view"
)

// A totalStore counts what is saved, and fails on request.
type totalStore struct {
	*deck
	fails atomic.Bool
	saves atomic.Int64
}

func (s *totalStore) SaveTotals(ctx context.Context, of []tapedeck.Session) error {
	if s.fails.Load() {
		return errors.New("no disk")
	}
	s.saves.Add(1)
	return s.deck.SaveTotals(ctx, of)
}

// saved returns the totals of the session and their row.
func (s *totalStore) saved(t *testing.T) (tapedeck.Totals, view.SessionSummary) {
	t.Helper()
	e, err := s.Head(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	var row view.SessionSummary
	if e.Totals.Row != nil {
		if err := json.Unmarshal(e.Totals.Row, &row); err != nil {
			t.Fatal(err)
		}
	}
	return e.Totals, row
}

func event(typ, data string) tapedeck.Event {
	return tapedeck.Event{Type: typ, Invocation: "i", Data: []byte(data)}
}

// run starts projections that keep totals.
func (s *totalStore) run(t *testing.T) *projection.Projections {
	ctx, stop := context.WithCancel(t.Context())
	p := projection.New(projection.Options{Store: s, Totals: s})
	s.Observe(p.Observer())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	return p
}

// settle waits until nothing is left to do.
func settle() { time.Sleep(time.Minute); synctest.Wait() }

func TestTotalsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &totalStore{deck: newDeck(t)}
		s.run(t)
		settle() // it finds the session, which has one event
		if got, _ := s.saved(t); got.At != 1 {
			t.Fatalf("at the start: %+v", got)
		}
		s.append(event(tapedeck.RunStarted, `{"input":{"messages":[{"role":"user","content":"Hi"}]}}`), event("TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`))
		for range 500 {
			s.append(event("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"word "}`))
		}
		settle()
		if got, _ := s.saved(t); got.At != 1 || s.saves.Load() != 1 {
			t.Fatalf("while a run is open: %+v after %d saves", got, s.saves.Load())
		}
		for range 500 {
			s.append(event("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"word "}`))
		}
		settle()
		if got, row := s.saved(t); got.At < 1001 || len(row.LastMessage.Text) != 200 || row.LastMessage.Role != "assistant" {
			t.Fatalf("after 1000 events of an open run: %+v", got)
		}
		s.append(event("TOOL_CALL_START", `{"toolCallId":"c","toolCallName":"Bash"}`),
			event("TOOL_CALL_RESULT", `{"toolCallId":"c","messageId":"r","content":"no","error":"no"}`),
			event(tapedeck.UsageReported, `{"model":"m1","inputTokens":40,"outputTokens":2,"costUsd":0.5}`), event(tapedeck.RunFinished, `{}`))
		settle()
		got, row := s.saved(t)
		if got.At != s.head || got.Tokens != 42 || got.CostMicros != 500_000 || got.Failures != 1 || got.RecordingMS < 1000 ||
			row.Model != "m1" || row.ToolCalls != 1 || row.ToolsFailed != 1 || row.Tokens != 42 || row.FinalStatus != tapedeck.StatusComplete {
			t.Fatalf("after the run: %+v %s", got, got.Row)
		}
	})
}

// TestTotalsComeInTime: appends outside of runs are gathered, and a failed save is
// repeated.
func TestTotalsComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &totalStore{deck: newDeck(t)}
		s.run(t)
		settle()
		for range 100 {
			s.append(event("acme.x", `{}`))
			synctest.Wait()
		}
		settle()
		if got, _ := s.saved(t); got.At != 101 || s.saves.Load() > 3 {
			t.Errorf("%+v after %d saves", got, s.saves.Load())
		}
		s.fails.Store(true)
		s.append(event("acme.x", `{}`))
		settle()
		s.fails.Store(false)
		settle()
		if got, _ := s.saved(t); got.At != 102 {
			t.Errorf("after a failure: %+v", got)
		}
	})
}

// TestErasedWordsLeaveTotals: the words of a message are in no totals when Erase returns,
// and the totals that are made again have none of them.
func TestErasedWordsLeaveTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &totalStore{deck: newDeck(t)}
		p := s.run(t)
		s.append(event("message.added", `{"message":{"id":"u","role":"user","content":"secret"}}`))
		settle()
		if _, row := s.saved(t); row.LastMessage == nil || row.LastMessage.Text != "secret" {
			t.Fatalf("before: %+v", row)
		}
		s.fails.Store(true)
		if err := p.Forget(t.Context(), s.id); err == nil {
			t.Error("it forgets without a store that writes")
		}
		s.fails.Store(false)
		_, err := s.Erase(t.Context(), tapedeck.Erasure{Session: s.id, Ranges: []tapedeck.OffsetRange{{From: 1, To: 2}},
			Events: []tapedeck.Event{{Type: tapedeck.SessionRedacted, Data: []byte(`{"ranges":[{"from":1,"to":2}]}`)}}})
		if got, _ := s.saved(t); err != nil || strings.Contains(string(got.Row), "secret") {
			t.Fatalf("after: %s, %v", got.Row, err)
		}
		settle()
		if got, row := s.saved(t); got.At != 3 || row.LastMessage != nil {
			t.Errorf("made again: %+v", row)
		}
	})
}
