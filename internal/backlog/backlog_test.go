package backlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// A stalling writer drops the records during every nth write, as a connection does whose
// client has stalled.
type stalling struct {
	bytes.Buffer
	records *Records
	every   int
	writes  int
}

func (s *stalling) Write(b []byte) (int, error) {
	if s.writes++; s.writes%s.every == 0 {
		s.records.drop()
	}
	return s.Buffer.Write(b)
}

func listOf(offsets ...int64) (list []tapedeck.Record) {
	for i, o := range offsets {
		list = append(list, tapedeck.Record{Offset: o, Data: []byte(strings.Repeat(fmt.Sprint(o, ","), 700*(i+1)))})
	}
	return list
}

// TestDropped: whenever the client stalls, also within a record, it receives every byte
// once. Only the record that is being written is in memory.
func TestDropped(t *testing.T) {
	for name, list := range map[string][]tapedeck.Record{
		"in a row": listOf(7, 8, 9, 10), "with gaps": listOf(1, 5, 6, 90), "in reverse": listOf(9, 8, 7), "one": listOf(3), "none": nil,
	} {
		var want bytes.Buffer
		store := map[int64]tapedeck.Record{}
		for _, r := range list {
			store[r.Offset] = r
			want.Write(r.Data)
		}
		for every := 1; every < 8; every++ {
			read := 0
			records := Of(t.Context(), list, func(offset int64) (tapedeck.Record, error) {
				read++
				return store[offset], nil
			})
			s := &stalling{records: records, every: every}
			w := bufio.NewWriterSize(s, 2048)
			for i := range records.Len() {
				if err := records.Write(w, i, 1, func(piece []byte) { _, _ = w.Write(piece) }); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			records.Done()
			if _ = w.Flush(); s.String() != want.String() {
				t.Errorf("%s, a stall every %d writes: %d bytes, want %d", name, every, s.Len(), want.Len())
			}
			if stalled := s.writes > every; stalled && (records.list.Load() != nil || read == 0) {
				t.Errorf("%s, a stall every %d writes: the records are still held", name, every)
			}
		}
	}
}

// TestCut: the first record may be a part of a record, also when it is read again.
func TestCut(t *testing.T) {
	whole := tapedeck.Record{Offset: 4, Data: []byte("0123456789")}
	part := whole
	part.Data = whole.Data[3:7]
	records := Of(t.Context(), []tapedeck.Record{part}, func(int64) (tapedeck.Record, error) { return whole, nil })
	records.Cut(3, 4)
	records.drop()
	if got, err := records.data(0); err != nil || string(got) != "3456" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestChanged: if a record is erased after a part of it was sent, the answer ends.
func TestChanged(t *testing.T) {
	erased := tapedeck.Record{Offset: 4, Data: []byte("{}")}
	records := Of(t.Context(), listOf(4), func(int64) (tapedeck.Record, error) { return erased, nil })
	w := bufio.NewWriterSize(&stalling{records: records, every: 1}, 1024)
	if err := records.Write(w, 0, 1, func(piece []byte) { _, _ = w.Write(piece) }); !errors.Is(err, errChanged) {
		t.Errorf("got %v", err)
	}
}
