package backlog

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
)

// largeRecord returns a record with its own memory.
func largeRecord(offset int64, fill byte) tapedeck.Record {
	return tapedeck.Record{Offset: offset, Data: bytes.Repeat([]byte{fill}, 2*large)}
}

func again(fill byte) func(int64) (tapedeck.Record, error) {
	return func(offset int64) (tapedeck.Record, error) { return largeRecord(offset, fill), nil }
}

// TestGateShares: readers of the same record share one copy. Another record with the same
// offset and size has its own.
func TestGateShares(t *testing.T) {
	g := newGate(6 * large)
	a, first, _ := g.enter(t.Context(), largeRecord(1, 'a'), again('a'))
	b, second, _ := g.enter(t.Context(), largeRecord(1, 'a'), again('a'))
	c, third, _ := g.enter(t.Context(), largeRecord(1, 'c'), again('c'))
	if &a.Data[0] != &b.Data[0] || c.Data[0] != 'c' || g.held != 4*large {
		t.Errorf("%d bytes are held", g.held)
	}
	for _, p := range []*Pass{first, second, third} {
		p.Leave()
		p.Leave()
	}
	if g.held != 0 || len(g.shared) != 0 {
		t.Errorf("%d bytes are held in the end", g.held)
	}
}

// TestGateWaits: a record for which there is no space waits in line, and is read then. A
// reader that disconnects leaves the line.
func TestGateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(3 * large)
		_, first, _ := g.enter(t.Context(), largeRecord(1, 'a'), again('a'))
		gone, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, _, err := g.enter(gone, largeRecord(2, 'b'), again('b'))
			left <- err
		}()
		synctest.Wait()
		read := make(chan tapedeck.Record, 1)
		go func() {
			rec, pass, _ := g.enter(t.Context(), largeRecord(3, 'c'), again('c'))
			pass.Leave()
			read <- rec
		}()
		synctest.Wait()
		if first.overdue() {
			t.Error("a new pass is overdue")
		}
		if time.Sleep(2 * maxHold); !first.overdue() { // of the bubble's clock
			t.Error("an old pass is not overdue")
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		select {
		case <-read:
			t.Fatal("there was no space")
		default:
		}
		first.Leave()
		if rec := <-read; rec.Offset != 3 || rec.Data[0] != 'c' {
			t.Errorf("got offset %d", rec.Offset)
		}
		if g.held != 0 || g.crowded.Load() {
			t.Errorf("%d bytes are held in the end", g.held)
		}
	})
}

// TestGateAlone: a record that is larger than the budget passes alone, and a failed read
// takes no space.
func TestGateAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(large)
		_, first, _ := g.enter(t.Context(), largeRecord(1, 'a'), again('a'))
		failed := make(chan error, 1)
		go func() {
			_, _, err := g.enter(t.Context(), largeRecord(2, 'b'), func(int64) (tapedeck.Record, error) { return tapedeck.Record{}, errChanged })
			failed <- err
		}()
		synctest.Wait()
		first.Leave()
		if err := <-failed; !errors.Is(err, errChanged) || g.held != 0 {
			t.Errorf("%v, %d bytes are held", err, g.held)
		}
	})
}
