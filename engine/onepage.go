package engine

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// A onePage is a log that keeps the first page that was read of a session, for a caller
// that reads the same events several times. It is for one goroutine. The caller calls
// forget before it appends.
type onePage struct {
	tapedeck.Log
	session string
	from    int64
	page    *tapedeck.Page
}

func (l *onePage) forget() { l.page = nil }

// Read implements [tapedeck.Log].
func (l *onePage) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	if session != l.session || r.Reverse || r.MaxBytes != 0 {
		return l.Log.Read(ctx, session, r)
	}
	if l.page == nil {
		p, err := l.Log.Read(ctx, session, tapedeck.Range{From: r.From})
		if err != nil {
			return p, err
		}
		l.from, l.page = r.From, &p
	}
	if r.From < l.from || r.From > l.from && r.From >= l.page.Next {
		return l.Log.Read(ctx, session, r)
	}
	return l.part(r), nil
}

// part returns the records of the page from an offset on.
func (l *onePage) part(r tapedeck.Range) tapedeck.Page {
	p := *l.page
	p.Records = p.Records[min(r.From-l.from, int64(len(p.Records))):]
	if r.Limit > 0 && r.Limit < len(p.Records) {
		p.Records = p.Records[:r.Limit]
		p.Next = r.From + int64(r.Limit)
	}
	return p
}
