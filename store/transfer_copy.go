package store

import (
	"context"
	"iter"
)

// Limits of what one commit of a transfer stores, and so of the memory it takes.
const (
	transferRows  = 4096    // rows or events
	transferBytes = 4 << 20 // bytes of events; a single event may have more
	transferGens  = 1024    // sessions whose rows are read together
)

// copyRows copies the rows of sessions, some sessions at a time.
func (t *transfer) copyRows(ctx context.Context) error {
	total := int64(0)
	for i, table := range t.tables {
		if table.Name == sessionsTable {
			total = t.digests[i].rows
		}
	}
	for done := int64(0); ; {
		last, err := t.from.NextGen(ctx, t.mark.Gen, transferGens)
		if err != nil || last == t.mark.Gen {
			return err
		}
		after := t.mark.Gen
		for _, table := range t.tables {
			if table.Key == "" {
				continue
			}
			if err := t.copyTable(ctx, table, after, last); err != nil {
				return err
			}
		}
		t.mark.Gen = last
		if err := t.to.PutRows(ctx, TransferTable{}, nil, t.mark); err != nil {
			return err
		}
		done += transferGens
		t.progress(StepSessions, min(done, total), total)
	}
}

// copyRest copies the rows that belong to no session.
func (t *transfer) copyRest(ctx context.Context) error {
	for _, table := range t.tables {
		if table.Key != "" {
			continue
		}
		if err := t.copyTable(ctx, table, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) copyTable(ctx context.Context, table TransferTable, after, last int64) error {
	var rows []TransferRow
	size := 0
	for row, err := range t.from.Rows(ctx, table, after, last) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if size += row.size(); len(rows) < transferRows && size < transferBytes {
			continue
		}
		if err := t.to.PutRows(ctx, table, rows, t.mark); err != nil {
			return err
		}
		rows, size = rows[:0], 0
	}
	if len(rows) == 0 {
		return nil
	}
	return t.to.PutRows(ctx, table, rows, t.mark)
}

func (r TransferRow) size() (n int) {
	for _, v := range r {
		if s, ok := v.(string); ok {
			n += len(s)
		}
	}
	return n
}

// copyEvents copies the events. While one part is stored, the next one is read.
func (t *transfer) copyEvents(ctx context.Context) error {
	total, err := t.from.CountEvents(ctx)
	if err != nil {
		return err
	}
	done := int64(0)
	if t.Resumed {
		if done, err = t.to.CountEvents(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	parts := make(chan part)
	defer func() {
		cancel()
		for range parts { // until the reader has ended
		}
	}()
	go readParts(ctx, t.from.Events(ctx, t.mark.EventGen, t.mark.EventOffset), parts)
	for p := range parts {
		if p.err != nil {
			return p.err
		}
		newest := p.events[len(p.events)-1]
		t.mark.EventGen, t.mark.EventOffset = newest.Gen, newest.Offset
		if err := t.to.PutEvents(ctx, p.events, t.mark); err != nil {
			return err
		}
		done += int64(len(p.events))
		t.progress(StepEvents, done, total)
	}
	return ctx.Err()
}

// A part is the events of one commit, or the error that ends them.
type part struct {
	events []TransferEvent
	err    error
}

// readParts sends the events in parts, and closes parts at the end, or when ctx is done.
func readParts(ctx context.Context, events iter.Seq2[TransferEvent, error], parts chan<- part) {
	defer close(parts)
	send := func(p part) bool {
		select {
		case parts <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	var p part
	size := 0
	for e, err := range events {
		if err != nil {
			send(part{err: err})
			return
		}
		p.events = append(p.events, e)
		if size += len(e.Data); len(p.events) < transferRows && size < transferBytes {
			continue
		}
		if !send(p) {
			return
		}
		p, size = part{}, 0
	}
	if len(p.events) > 0 {
		send(p)
	}
}
