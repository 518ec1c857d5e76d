package projection_test

import (
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/view"
)

// checkChannels finds the event of each number, and the number of each offset.
func checkChannels(t *testing.T, p *projection.Projections, l tapedeck.Log, session string) {
	t.Helper()
	number, head := int64(0), int64(0)
	for e, err := range tapedeck.Events(t.Context(), l, session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		head = e.Offset + 1
		sampled := e.Offset%97 == 0 || e.Offset%1000 < 2
		if !sampled {
			if view.InChannels(&e) {
				number++
			}
			continue
		}
		if got, err := p.ChannelNumber(t.Context(), session, e.Offset); err != nil || got != number {
			t.Fatalf("%d events of the form are before offset %d, not %d; %v", number, e.Offset, got, err)
		}
		if !view.InChannels(&e) {
			continue
		}
		if offset, n, err := p.ChannelPlace(t.Context(), session, number); err != nil || n != number || offset != e.Offset {
			t.Fatalf("event %d of the form is at offset %d, not %d (number %d); %v", number, e.Offset, offset, n, err)
		}
		number++
	}
	if number == 0 || number == head {
		t.Fatalf("%d of %d events are in the form: the test shows little", number, head)
	}
	for _, n := range []int64{number, number + 1, 1 << 62} {
		if offset, next, err := p.ChannelPlace(t.Context(), session, n); err != nil || offset != head || next != number {
			t.Fatalf("the event %d that is to come is at %d, number %d, %v; want %d, %d", n, offset, next, err, head, number)
		}
	}
	if n, err := p.ChannelNumber(t.Context(), session, 1<<62); err != nil || n != number {
		t.Fatalf("beyond the head there are %d, %v; want %d", n, err, number)
	}
}

func TestChannelPlaces(t *testing.T) {
	d := newDeck(t)
	for i := range 300 {
		d.run([]string{"", "a", "b"}[i%3])
		if i%40 == 7 {
			d.jump(d.head-20, "")
		}
	}
	fork := d.branchOff("fork", 2001)
	for range 30 {
		fork.run("c")
	}
	if d.head < 2100 {
		t.Fatalf("the log has only %d events", d.head)
	}
	for _, every := range []int64{7, 10_000} {
		p := projection.New(projection.Options{Store: d, Every: every})
		for _, id := range []string{d.id, "fork"} {
			checkChannels(t, p, d, id)
			checkChannels(t, projection.New(projection.Options{Store: d, Every: every}), d, id) // from checkpoints
		}
	}
}
