package indexer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/search/indexer"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// openBench returns a store in a folder with an index that observes it.
func openBench(b *testing.B) (*sqlite.Store, *indexer.Index) {
	s, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	i, err := s.OpenIndex()
	if err != nil {
		b.Fatal(err)
	}
	x := indexer.New(indexer.Options{Index: i, Log: s, Patience: time.Hour})
	s.Observe(x.Observer())
	return s, x
}

// turn returns the events of a turn of an agent: 40 events, of which 6 complete a
// document.
func turn(i int) []tapedeck.Event {
	id := fmt.Sprint("m", i)
	payloads := []payload.Payload{
		payload.MessageAdded{Message: payload.NewMessage("u"+id, payload.RoleUser, fmt.Sprintf("please look at file number%d and fix the tests", i))},
		payload.ToolCallStart{ToolCallID: id, ToolCallName: "Read"},
		payload.ToolCallArgs{ToolCallID: id, Delta: payload.Piece(fmt.Sprintf(`{"path":"src/pkg%d/file_test.go"}`, i%100))},
		payload.ToolCallEnd{ToolCallID: id},
		payload.ToolCallResult{MessageID: "r" + id, ToolCallID: id, Content: []byte(`"` + strings.Repeat("func TestSomething of the package with some words ", 20) + `"`)},
		payload.TextMessageStart{MessageID: id},
	}
	for j := range 33 {
		payloads = append(payloads, payload.TextMessageContent{MessageID: id, Delta: payload.Piece(fmt.Sprintf("the word%d is here and ", (i*7+j)%5000))})
	}
	payloads = append(payloads, payload.TextMessageEnd{MessageID: id})
	events := make([]tapedeck.Event, len(payloads))
	for i, p := range payloads {
		events[i] = payload.NewEvent(p)
		events[i].Invocation = "run"
	}
	return events
}

func fill(b *testing.B, s *sqlite.Store, sessions, turns int) {
	for i := range sessions {
		id := fmt.Sprint("s", i)
		if _, err := s.Create(b.Context(), tapedeck.Spec{ID: id, Kind: tapedeck.KindSession}); err != nil {
			b.Fatal(err)
		}
		for j := range turns {
			if _, err := s.Append(b.Context(), tapedeck.Append{Session: id, Events: turn(i*turns + j)}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkIndexing indexes 1,000 sessions of 400 events.
func BenchmarkIndexing(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s, x := openBench(b)
		fill(b, s, 1000, 10)
		b.StartTimer()
		if err := x.CatchUp(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*400_000/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkSearch searches 1,000 sessions of 400 events.
func BenchmarkSearch(b *testing.B) {
	s, x := openBench(b)
	fill(b, s, 1000, 10)
	if err := x.CatchUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, text := range []string{"number4711", "word17 word18", `"fix the tests"`, "pack*"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				if _, err := x.Search(b.Context(), search.Query{Text: text}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAppend appends turns with 16 writers, with and without an index that runs
// at the same time.
func BenchmarkAppend(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprint("indexing=", on), func(b *testing.B) {
			s, x := openBench(b)
			for i := range 16 {
				if _, err := s.Create(b.Context(), tapedeck.Spec{ID: fmt.Sprint("s", i), Kind: tapedeck.KindSession}); err != nil {
					b.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() {
				if on {
					x.Run(ctx)
				}
				close(done)
			}()
			b.SetParallelism(8)
			var next = make(chan int, 1)
			next <- 0
			b.RunParallel(func(p *testing.PB) {
				n := <-next
				next <- n + 1
				var events []tapedeck.Event
				for i := 0; p.Next(); i++ {
					if len(events) == 0 {
						events = turn(i)
					}
					e := events[:1:1]
					events = events[1:]
					if _, err := s.Append(ctx, tapedeck.Append{Session: fmt.Sprint("s", n%16), Events: e}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			stop()
			<-done
		})
	}
}

// BenchmarkForget forgets a session in an index of 1,000 sessions.
func BenchmarkForget(b *testing.B) {
	s, x := openBench(b)
	fill(b, s, 1000, 10)
	for b.Loop() {
		b.StopTimer()
		if err := x.CatchUp(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := x.Forget(b.Context(), "s7"); err != nil {
			b.Fatal(err)
		}
	}
}
