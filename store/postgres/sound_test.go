package postgres_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// spoil runs statements in the schema of a store.
func spoil(t *testing.T, o postgres.Options, statements ...string) {
	t.Helper()
	u, _ := url.Parse(o.URL)
	statements = append([]string{"SET search_path = " + u.Query().Get("search_path")}, statements...)
	if err := pgtest.Shared(t).Exec("postgres", statements...); err != nil {
		t.Fatal(err)
	}
}

// isDamage reports whether err names a damaged event.
func isDamage(err error, id string, offset int) bool {
	return tapedeck.KindOf(err) == tapedeck.Internal && strings.Contains(err.Error(), fmt.Sprintf("the event at offset %d of session %q is damaged", offset, id))
}

// TestChanged changes the bytes of one event. It is not served, all others are, the server
// logs it once, and what is made of it is refused.
func TestChanged(t *testing.T) {
	var log bytes.Buffer
	o := postgres.Options{URL: place(t), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s := open(t, o)
	create(t, s, "a")
	for i := range 6 {
		add(t, s, "a", fmt.Sprint(i))
	}
	spoil(t, o, `UPDATE events SET event = overlay(event placing 'X' from octet_length(event) - 3) WHERE "offset" = 3`)
	for range 2 {
		for _, c := range []struct {
			tapedeck.Range
			n int
		}{{tapedeck.Range{}, 3}, {tapedeck.Range{From: 3}, 0}, {tapedeck.Range{From: 4}, 2}, {tapedeck.Range{From: -1, Reverse: true}, 2}, {tapedeck.Range{From: 4, Reverse: true}, 0}} {
			p, err := s.Read(t.Context(), "a", c.Range)
			if len(p.Records) != c.n || (c.n == 0) != isDamage(err, "a", 3) {
				t.Errorf("%+v: %d records and %v", c.Range, len(p.Records), err)
			}
		}
	}
	if n := strings.Count(log.String(), "is damaged"); n != 1 || s.Figures().Damaged != 1 {
		t.Errorf("it is counted %d times and logged %d times", s.Figures().Damaged, n)
	}
	_, err := s.Erase(t.Context(), tapedeck.Erasure{Session: "a", Ranges: []tapedeck.OffsetRange{{From: 1, To: 6}}, Events: []tapedeck.Event{{Type: "events.erased"}}})
	if !isDamage(err, "a", 3) {
		t.Errorf("an erasure: %v", err)
	}
	if _, err := s.Create(t.Context(), tapedeck.Spec{ID: "b", Parent: "a", ForkAt: new(int64(4))}); !isDamage(err, "a", 3) {
		t.Errorf("a fork: %v", err)
	}
}

// TestSumsOfErased: an erasure gives the events new sums, and the chain holds, also into
// forks and after events without sums.
func TestSumsOfErased(t *testing.T) {
	for name, old := range map[string]bool{"all": false, "some": true} {
		t.Run(name, func(t *testing.T) {
			o := postgres.Options{URL: place(t)}
			s := open(t, o)
			create(t, s, "a")
			for i := range 3 {
				add(t, s, "a", fmt.Sprint(i))
			}
			if old {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				spoil(t, o, "UPDATE events SET sum = NULL", "UPDATE heads SET link = 0")
				s = open(t, o)
			}
			for i := range 3 {
				add(t, s, "a", fmt.Sprint(i))
			}
			if _, err := s.Erase(t.Context(), tapedeck.Erasure{Session: "a", Ranges: []tapedeck.OffsetRange{{From: 1, To: 5}}, Events: []tapedeck.Event{{Type: "events.erased"}}}); err != nil {
				t.Fatal(err)
			}
			add(t, s, "a", "x")
			for id, at := range map[string]int64{"b": 2, "c": 4, "d": 8} {
				if _, err := s.Create(t.Context(), tapedeck.Spec{ID: id, Parent: "a", ForkAt: &at, Events: []tapedeck.Event{{Type: "x"}}}); err != nil {
					t.Fatal(err)
				}
			}
			report, err := postgres.Verify(t.Context(), o, nil)
			if want := map[bool]int64{true: 3}[old]; err != nil || len(report.Problems) > 0 || report.Unsummed != want || report.Events != 11 {
				t.Errorf("got %+v, %v", report, err)
			}
		})
	}
}
