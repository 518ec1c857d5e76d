package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A totaller is a store that keeps totals.
type totaller interface {
	SaveTotals(ctx context.Context, of []tapedeck.Session) error
}

// totals saves the totals of a session.
func totals(id string, t tapedeck.Totals) step {
	return step{fmt.Sprintf("save totals of %s: %+v", id, t), func(w *world) error {
		s, err := w.Head(w.ctx, id)
		if err != nil {
			return err
		}
		return w.Store.Store.(totaller).SaveTotals(w.ctx, []tapedeck.Session{{ID: id, Gen: s.Gen, Totals: t}})
	}}
}

// said appends an event of the conversation with its time.
func said(id, typ, invocation string, at time.Time) step {
	e := tapedeck.Event{Type: typ, Invocation: invocation, Time: at, Data: []byte("{}")}
	return write(id, 0, events(e), accepting([]string{""}))
}

func testSort(t *testing.T, open opener) {
	by := func(sort string) tapedeck.Filter { return tapedeck.Filter{Sort: sort} }
	up := func(sort string) tapedeck.Filter { return tapedeck.Filter{Sort: sort, Ascending: true} }
	paged := func(f tapedeck.Filter) tapedeck.Filter { f.Limit = 1; return f }
	play(t, open, "by title", createdWith("b", "beta", "", ""), createdWith("c", "ALPHA", "", ""), create("a1"), createdWith("d", "Über", "", ""), createdWith("e", "beta", "", ""),
		lists(up(store.SortTitle), "a1", "c", "b", "e", "d"), lists(paged(up(store.SortTitle)), "a1", "c", "b", "e", "d"),
		lists(by(store.SortTitle), "d", "e", "b", "c", "a1"), lists(paged(by(store.SortTitle)), "d", "e", "b", "c", "a1"),
		lists(up(store.SortCreated), "b", "c", "a1", "d", "e"), lists(paged(up(store.SortCreated)), "b", "c", "a1", "d", "e"),
		write("d", 0, events(tapedeck.Event{Type: tapedeck.SessionRenamed, Data: []byte(`{"title":"a "}`)}), accepting([]string{""})),
		lists(up(store.SortTitle), "d", "a1", "c", "b", "e"), reopen(), lists(up(store.SortTitle), "d", "a1", "c", "b", "e"))
	play(t, open, "long titles", createdWith("a", strings.Repeat("é", 500)+"b", "", ""), createdWith("b", strings.Repeat("é", 500)+"a", "", ""), create("c"), write("c", 0, events(tapedeck.Event{Type: tapedeck.SessionRenamed, Data: []byte(`{"title":"nul \u0000\u001a"}`)}), accepting([]string{""})),
		lists(paged(up(store.SortTitle)), "c", "a", "b"), lists(paged(by(store.SortTitle)), "b", "a", "c"))
	t.Run("by totals", func(t *testing.T) { testTotals(t, open) })
	t.Run("by activity", func(t *testing.T) { testActivity(t, open) })
	play(t, open, "bad orders", create("a"), refusedList(tapedeck.Filter{Sort: "size"}), refusedList(tapedeck.Filter{Sort: store.SortTitle, Kind: tapedeck.KindStream}),
		refusedList(tapedeck.Filter{Sort: store.SortTitle, Cursor: "3"}), refusedList(tapedeck.Filter{Sort: store.SortTokens, Cursor: "tokens-up.1.1"}),
		refusedList(tapedeck.Filter{Sort: store.SortTokens, Cursor: "tokens.x.1"}), refusedList(tapedeck.Filter{Sort: store.SortTitle, Cursor: "title./w.1"}),
		refusedList(tapedeck.Filter{Sort: store.SortTitle, Cursor: "title.AA.1"}), refusedList(tapedeck.Filter{Sort: store.SortTokens, Cursor: "tokens.1.-1"}))
}

// testTotals checks the orders by totals, and that totals survive.
func testTotals(t *testing.T, open opener) {
	if _, ok := start(t, open).Store.Store.(totaller); !ok {
		t.Skip("a layer over a store keeps no totals")
	}
	by := func(sort string) tapedeck.Filter { return tapedeck.Filter{Sort: sort} }
	up := func(sort string) tapedeck.Filter { return tapedeck.Filter{Sort: sort, Ascending: true} }
	paged := func(f tapedeck.Filter) tapedeck.Filter { f.Limit = 1; return f }
	play(t, open, "orders", create("a"), create("b"), create("c"), create("stream/s"), reopen(),
		totals("a", tapedeck.Totals{At: 0, Tokens: 5, CostMicros: 1, RecordingMS: 9, Failures: 2, Row: []byte(`{"x":"\u0000é"}`)}),
		totals("b", tapedeck.Totals{Tokens: 7, CostMicros: -1, RecordingMS: 9, Failures: 1}),
		lists(by(store.SortTokens), "b", "a", "c"), lists(up(store.SortCost), "b", "c", "a"), lists(by(store.SortDuration), "b", "a", "c"),
		lists(paged(by(store.SortFailures)), "a", "b", "c"), reopen(), lists(paged(by(store.SortTokens)), "b", "a", "c"),
		looks("a", "has its row", func(s tapedeck.Session) bool {
			return string(s.Totals.Row) == `{"x":"\u0000é"}` && s.Totals.Failures == 2
		}),
		write("a", 1), looks("a", "keeps its row", func(s tapedeck.Session) bool { return s.Totals.Row != nil }),
		totals("a", tapedeck.Totals{At: 1, Tokens: 5}), looks("a", "has no row", func(s tapedeck.Session) bool { return s.Totals.Row == nil && s.Totals.At == 1 }),
		remove("b"), lists(by(store.SortTokens), "a", "c"), create("b"), lists(by(store.SortTokens), "a", "b", "c"),
		step{"save totals of what is not there", func(w *world) error {
			return w.Store.Store.(totaller).SaveTotals(w.ctx, []tapedeck.Session{{ID: "none", Totals: tapedeck.Totals{Tokens: 9}}, {ID: "c", Gen: 1 << 40, Totals: tapedeck.Totals{Tokens: 9}}})
		}}, lists(by(store.SortTokens), "a", "b", "c"))
}

// refusedList expects that a list is invalid.
func refusedList(f tapedeck.Filter) step {
	return step{fmt.Sprintf("list %+v", f), func(w *world) error {
		_, err := w.List(w.ctx, f)
		return isKind(err, tapedeck.Invalid)
	}}
}

// testActivity checks the order by activity: those that wait, those that run, the others.
func testActivity(t *testing.T, open opener) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
	f := tapedeck.Filter{Sort: store.SortActivity}
	one := tapedeck.Filter{Sort: store.SortActivity, Limit: 1}
	text := tapedeck.TextMessageContent
	play(t, open, "times", create("a"), create("b"), create("c"),
		said("a", text, "", minute(1)), said("b", text, "", minute(3)), said("c", text, "", minute(2)), lists(f, "b", "c", "a"), lists(one, "b", "c", "a"),
		said("a", tapedeck.BookmarkAdded, "", minute(9)), lists(f, "b", "c", "a"),
		said("a", text, "", minute(4)), lists(f, "a", "b", "c"), said("b", text, "", minute(1)), lists(f, "a", "b", "c"),
		said("c", tapedeck.RunStarted, "i", minute(3)), lists(f, "c", "a", "b"), said("b", tapedeck.RunStarted, "i", minute(5)), lists(one, "b", "c", "a"),
		said("c", text, "i", minute(8)), lists(f, "b", "c", "a"),
		input("c", "permission.requested", `{"id":"p"}`), lists(one, "c", "b", "a"), reopen(), lists(f, "c", "b", "a"),
		input("c", "permission.answered", `{"id":"p","option":"x"}`), lists(f, "b", "c", "a"),
		said("c", tapedeck.RunFinished, "i", minute(9)), said("b", tapedeck.RunError, "i", minute(7)), lists(f, "c", "b", "a"),
		step{"page while a session moves", func(w *world) error {
			first, err := w.List(w.ctx, one)
			if err != nil {
				return err
			}
			w.play(said("a", text, "", minute(30)), create("new"))
			more := one
			more.Cursor = first.Next
			rest, err := w.list(more)
			if got := idsOf(rest); !slices.Equal(got, []string{"b"}) {
				err = errors.Join(err, fmt.Errorf("the rest is %v", got))
			}
			return err
		}})
}
