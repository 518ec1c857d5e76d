package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
	"math"

	"github.com/tapedeck/tapedeck"
)

// A tableDigest is the digest of the rows of a table, in any order: databases sort texts in
// different ways. It is the sum of the digests of the rows, each read as four numbers.
type tableDigest struct {
	rows int64
	sum  [4]uint64
}

// digestAll digests the tables of a side.
func digestAll(ctx context.Context, side TransferSide, tables []TransferTable) ([]tableDigest, error) {
	out := make([]tableDigest, len(tables))
	for i, table := range tables {
		for row, err := range side.Rows(ctx, table, 0, maxGen) {
			if err != nil {
				return nil, err
			}
			out[i].add(row)
		}
	}
	return out, nil
}

// maxGen is above every gen.
const maxGen = 1<<63 - 1

func (d *tableDigest) add(row TransferRow) {
	h := sha256.New()
	for _, v := range row {
		writeValue(h, v)
	}
	sum := h.Sum(nil)
	d.rows++
	for i := range d.sum {
		d.sum[i] += binary.BigEndian.Uint64(sum[8*i:])
	}
}

// writeValue writes a value so that no two rows are written alike; nil as zeros.
func writeValue(h hash.Hash, v any) {
	var b [9]byte
	switch v := v.(type) {
	case int64:
		b[0] = 'i'
		binary.BigEndian.PutUint64(b[1:], uint64(v))
	case float64:
		b[0] = 'f'
		binary.BigEndian.PutUint64(b[1:], math.Float64bits(v))
	case string:
		b[0] = 's'
		binary.BigEndian.PutUint64(b[1:], uint64(len(v)))
		h.Write(b[:])
		h.Write([]byte(v))
		return
	}
	h.Write(b[:])
}

// fingerprint returns the digest of everything but the events.
func fingerprint(tables []TransferTable, digests []tableDigest, f TransferFacts) string {
	h := sha256.New()
	for i, d := range digests {
		fmt.Fprintln(h, tables[i].Name, tables[i].Columns, d.rows, d.sum)
	}
	fmt.Fprintln(h, f)
	return hex.EncodeToString(h.Sum(nil))
}

// compareRows compares the tables of both sides.
func (t *transfer) compareRows(ctx context.Context) error {
	digests, err := digestAll(ctx, t.to, t.tables)
	if err != nil {
		return err
	}
	for i, table := range t.tables {
		switch have, want := digests[i], t.digests[i]; {
		case have.rows != want.rows:
			return t.differ("the table %s has %d rows there and %d here", table.Name, have.rows, want.rows)
		case have.sum != want.sum:
			return t.differ("the table %s has other values there", table.Name)
		}
		t.Rows += digests[i].rows
	}
	return nil
}

// differ returns the error for data that is not the same on both sides.
func (t *transfer) differ(format string, args ...any) error {
	return tapedeck.Errorf(tapedeck.Internal, "%s does not have what %s has: %s", t.to.Where(), t.from.Where(), fmt.Sprintf(format, args...)).
		WithHint("nothing can be served from there; empty the target and migrate again, and report this if it happens twice")
}

// compareEvents compares each event of both sides.
func (t *transfer) compareEvents(ctx context.Context) error {
	total, err := t.from.CountEvents(ctx)
	if err != nil {
		return err
	}
	at, what, err := t.findDifference(ctx, total)
	if err != nil || what == "" {
		return err
	}
	return t.differ("the event at offset %d of %s %s", at.Offset, t.nameOf(ctx, at.Gen), what)
}

// findDifference returns the first event that is not the same on both sides, and what is
// wrong with it; "" if all events are the same.
func (t *transfer) findDifference(ctx context.Context, total int64) (at TransferEvent, what string, err error) {
	next, stop := iter.Pull2(t.to.Events(ctx, 0, 0))
	defer stop()
	for want, err := range t.from.Events(ctx, 0, 0) {
		if err != nil {
			return at, "", err
		}
		have, err, more := next()
		switch {
		case err != nil:
			return at, "", err
		case !more || have.Gen != want.Gen || have.Offset != want.Offset:
			return want, "is not there", nil
		case !want.Sound():
			return want, "is damaged here", nil
		case !bytes.Equal(have.Data, want.Data) || !have.Sound():
			return want, "is another one there", nil
		case (have.Sum == nil) != (want.Sum == nil) || have.Sum != nil && *have.Sum != *want.Sum:
			return want, "has another checksum there", nil
		}
		t.Bytes += int64(len(want.Data))
		if t.Events++; t.Events%transferRows == 0 {
			t.progress(StepCompare, t.Events, total)
		}
	}
	t.progress(StepCompare, t.Events, total)
	have, err, more := next()
	if more && err == nil {
		return have, "is only there", nil
	}
	return at, "", err
}
