package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

func TestPace(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 0, 1: 0, 24: 0, 25: 10 * time.Millisecond, 200: 80 * time.Millisecond, 5000: paceLimit} {
		e := &Engine{runs: map[string]*run{}}
		for i := range n {
			e.runs[fmt.Sprint(i)] = nil
		}
		if got := e.pace(); got != want {
			t.Errorf("of %d runs: %v, want %v", n, got, want)
		}
	}
}

// Only deltas of one message wait, and only while more can arrive.
func TestWhatWaits(t *testing.T) {
	delta := func(id string) tapedeck.Event {
		return tapedeck.Event{Type: tapedeck.TextMessageContent, Data: []byte(`{"messageId":"` + id + `","delta":"x"}`)}
	}
	end := tapedeck.Event{Type: tapedeck.TextMessageEnd, Data: []byte(`{"messageId":"m"}`)}
	for name, test := range map[string]struct {
		events []tapedeck.Event
		closed bool
		want   bool
	}{
		"nothing":      {nil, false, false},
		"a delta":      {[]tapedeck.Event{delta("m")}, false, true},
		"deltas":       {[]tapedeck.Event{delta("m"), delta("m")}, false, true},
		"of two":       {[]tapedeck.Event{delta("m"), delta("n")}, false, false},
		"and an end":   {[]tapedeck.Event{delta("m"), end}, false, false},
		"the last one": {[]tapedeck.Event{delta("m")}, true, false},
	} {
		q := newQueue()
		for _, e := range test.events {
			q.push(e)
		}
		if test.closed {
			q.close(errors.New("done"))
		}
		e := &Engine{runs: map[string]*run{}}
		for i := range 100 {
			e.runs[fmt.Sprint(i)] = nil
		}
		p := pacer{wrote: time.Now()}
		if got := p.wait(&run{engine: e, queue: q}); got != test.want || got != (p.due != nil) {
			t.Errorf("%s: it waits: %v", name, got)
		}
		p = pacer{wrote: time.Now().Add(-time.Second)}
		if p.wait(&run{engine: e, queue: q}) {
			t.Errorf("%s: it waits a second later", name)
		}
	}
}
