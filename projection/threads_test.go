package projection_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
)

// A checkpoint has all threads of a session. All checkpoints together have no more
// threads than there are events. Otherwise the cost would grow with the square of
// the number of threads.
func TestManyThreads(t *testing.T) {
	const threads = 2_000
	events := []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: []byte(`{"title":"Many"}`)}}
	for i := range threads {
		thread, run := fmt.Sprint("sub_", i), fmt.Sprint("i", i)
		events = append(events,
			say(thread, run, tapedeck.MessageAdded, `{"message":{"id":"u%d","role":"user","content":"question %d"}}`, i, i),
			say(thread, run, tapedeck.RunStarted, `{"threadId":"t","runId":"i%d","parentRunId":"i%d"}`, i, i/2),
			say(thread, run, tapedeck.RunFinished, `{"threadId":"t","runId":"i%d"}`, i))
	}
	d := filled(t, events)
	if err := projection.New(projection.Options{Store: d, Every: 100}).Advance(context.Background(), d.id); err != nil {
		t.Fatal(err)
	}
	page, err := d.List(context.Background(), tapedeck.Filter{Kind: tapedeck.KindView, Query: "/standing", Limit: 1000})
	if err != nil || len(page.Sessions) == 0 || len(page.Sessions) > 100 {
		t.Errorf("%d checkpoints, %v; every 20 events there would be %d", len(page.Sessions), err, len(events)/20)
	}
	d.check(projection.New(projection.Options{Store: d, Every: 100}), d.id, d.head)
}
