package sqlite_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// chunk returns an event of about 330 bytes.
func chunk() tapedeck.Event {
	return tapedeck.Event{
		Type: "TEXT_MESSAGE_CONTENT", Invocation: "inv_01JABCDEFGHJKMNPQRSTVWXYZ0", Actor: "agent:bench",
		Data: []byte(`{"messageId":"msg_01JABCDEFGHJKMNPQRSTVWXYZ0","delta":"` + strings.Repeat("word ", 20) + `"}`),
	}
}

func chunks(n int) []tapedeck.Event {
	out := make([]tapedeck.Event, n)
	for i := range out {
		out[i] = chunk()
	}
	return out
}

func create(t testing.TB, s tapedeck.Store, id string) {
	t.Helper()
	if _, err := s.Create(context.Background(), tapedeck.Spec{ID: id}); err != nil {
		t.Fatal(err)
	}
}

func add(t testing.TB, s tapedeck.Store, id string, n int) {
	t.Helper()
	for n > 0 {
		k := min(n, 5000)
		if _, err := s.Append(context.Background(), tapedeck.Append{Session: id, Events: chunks(k)}); err != nil {
			t.Fatal(err)
		}
		n -= k
	}
}

// BenchmarkAppend has goroutines that each append to a session of their own and wait
// until the event is durable.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ writers, sessions, batch int }{
		{1, 1, 1}, {1, 1, 10}, {64, 64, 1}, {64, 64, 10}, {64, 1, 1}, {64, 12800, 1}, {1000, 1000, 1},
	} {
		b.Run(fmt.Sprintf("writers=%d/sessions=%d/batch=%d", c.writers, c.sessions, c.batch), func(b *testing.B) {
			var commits atomic.Int64
			s := open(b, b.TempDir(), sqlite.Options{Commit: func(commit func() error) error {
				commits.Add(1)
				return commit()
			}})
			for i := range c.sessions {
				create(b, s, fmt.Sprint("s", i))
			}
			commits.Store(0)
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range c.writers {
				wg.Go(func() {
					events := chunks(c.batch)
					for i := w; next.Add(int64(c.batch)) <= int64(b.N); i += c.writers {
						a := tapedeck.Append{Session: fmt.Sprint("s", i%c.sessions), Events: events}
						if _, err := s.Append(context.Background(), a); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.N)/float64(commits.Load()), "events/commit")
		})
	}
}

// BenchmarkReplay reads a session from its first event to its last.
func BenchmarkReplay(b *testing.B) {
	const n = 200_000
	s := open(b, b.TempDir(), sqlite.Options{})
	create(b, s, "s")
	add(b, s, "s", n)
	b.ReportAllocs()
	for b.Loop() {
		for from := int64(0); from < n; {
			p, err := s.Read(context.Background(), "s", tapedeck.Range{From: from})
			if err != nil {
				b.Fatal(err)
			}
			from = p.Next
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkLength shows the cost of a long history for calls that do not read it.
func BenchmarkLength(b *testing.B) {
	for _, n := range []int{10, 1000, 1_000_000} {
		dir := b.TempDir()
		s := open(b, dir, sqlite.Options{})
		create(b, s, "s")
		add(b, s, "s", n)
		forks := 0
		b.Run(fmt.Sprintf("fork/%d", n), func(b *testing.B) {
			for b.Loop() {
				forks++
				if _, err := s.Create(context.Background(), tapedeck.Spec{ID: fmt.Sprint("f", forks), Parent: "s"}); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("open/%d", n), func(b *testing.B) {
			for b.Loop() {
				open(b, dir, sqlite.Options{}).Close()
			}
		})
		s = open(b, dir, sqlite.Options{})
		b.Run(fmt.Sprintf("last100/%d", n), func(b *testing.B) {
			for b.Loop() {
				p, err := s.Read(context.Background(), "s", tapedeck.Range{From: -1, Limit: 100, Reverse: true})
				if err != nil || len(p.Records) != min(n, 100) {
					b.Fatal(len(p.Records), err)
				}
			}
		})
	}
}
