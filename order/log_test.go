package order

import (
	"context"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

var noon = time.Date(2026, 1, 5, 12, 34, 56, 789e6, time.UTC)

// A fakeLog returns pages of two records.
type fakeLog struct {
	tapedeck.Log
	records []tapedeck.Record
	fail    error
}

func (l fakeLog) Read(_ context.Context, _ string, r tapedeck.Range) (tapedeck.Page, error) {
	end := min(int(r.From)+2, len(l.records))
	return tapedeck.Page{Records: l.records[r.From:end], Next: int64(end), Head: int64(len(l.records))}, l.fail
}

func logOf(t testing.TB, events ...tapedeck.Event) fakeLog {
	t.Helper()
	_, drafts, err := tapedeck.Drafts(events, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	var l fakeLog
	for i, d := range drafts {
		l.records = append(l.records, d.Record(int64(i)))
	}
	return l
}
