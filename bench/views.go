package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/view"
)

// viewLengths has the lengths of the compared sessions, in events.
var viewLengths = [...]int64{100_000, 1_000_000}

// A viewCase is one measured view.
type viewCase struct {
	name string
	look func(ctx context.Context, p *projection.Projections, id string) error
}

var viewCases = []viewCase{
	{"snapshot", func(ctx context.Context, p *projection.Projections, id string) error {
		s, err := p.Snapshot(ctx, id, view.Query{Limit: 100})
		if err == nil && len(s.Messages) != 100 {
			err = fmt.Errorf("the snapshot of %s has %d messages", id, len(s.Messages))
		}
		return err
	}},
	{"tasks", func(ctx context.Context, p *projection.Projections, id string) error {
		s, err := p.Snapshot(ctx, id, view.Query{Limit: 100, Runs: true})
		if err == nil && len(view.Tasks(s)) != 100 {
			err = fmt.Errorf("%s has %d tasks", id, len(view.Tasks(s)))
		}
		return err
	}},
	{"context", func(ctx context.Context, p *projection.Projections, id string) error {
		s, err := p.Snapshot(ctx, id, view.Query{Limit: view.Window})
		view.ContextEvents(s, view.InThread(""))
		return err
	}},
	{"instances", func(ctx context.Context, p *projection.Projections, id string) error {
		_, err := p.Instances(ctx, id, -1)
		return err
	}},
	{"summary", func(ctx context.Context, p *projection.Projections, id string) error {
		_, err := p.Summary(ctx, id, -1)
		return err
	}},
	{"replay index", func(ctx context.Context, p *projection.Projections, id string) error {
		x, err := p.Index(ctx, id, -1)
		x = x.Limited(500)
		return err
	}},
	{"branches", func(ctx context.Context, p *projection.Projections, id string) error {
		_, err := p.Branches(ctx, id, -1)
		return err
	}},
	{"snapshot in the middle", func(ctx context.Context, p *projection.Projections, id string) error {
		s, err := p.Snapshot(ctx, id, view.Query{Limit: 1})
		if err == nil {
			_, err = p.Snapshot(ctx, id, view.Query{At: new(s.At / 2), Limit: 100})
		}
		return err
	}},
}

// measureViews compares the newest views of a long session with those of a short one. It
// opens the store again for each view, so no state is in memory, and only the checkpoints
// help.
func measureViews(ctx context.Context, r *report) error {
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := fillConversations(ctx, dir, viewLengths[:]); err != nil {
		return err
	}
	for _, c := range viewCases {
		if err := measureView(ctx, r, dir, c); err != nil {
			return err
		}
	}
	return nil
}

func measureView(ctx context.Context, r *report, dir string, c viewCase) error {
	var took, heap [2][]float64
	for range 7 {
		for i, n := range viewLengths {
			d, bytes, err := newestView(ctx, dir, fmt.Sprint(n), c)
			if err != nil {
				return err
			}
			took[i], heap[i] = append(took[i], d), append(heap[i], bytes)
		}
	}
	long, ratio := quantile(took[1], .5), quantile(took[1], .5)/quantile(took[0], .5)
	r.alone("views: "+c.name+" of 1,000,000 events and 2,000 tasks, compared with 100,000 and 200", fmt.Sprintf("%.2f× (%.1f ms, %.1f MiB in memory)", ratio, long, quantile(heap[1], .5)), "≤ 50 ms", long <= 50)
	return nil
}

// fillConversations makes sessions with these numbers of events and stores their
// checkpoints. A server that appended the events would have the same checkpoints.
func fillConversations(ctx context.Context, dir string, lengths []int64) error {
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	p := projection.New(projection.Options{Store: s})
	for _, n := range lengths {
		id := fmt.Sprint(n)
		if _, err := s.Create(ctx, tapedeck.Spec{ID: id, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated}}}); err != nil {
			return err
		}
		for head, turn := int64(1), 0; head < n; turn++ {
			var events []tapedeck.Event
			for len(events) < 5000 && head+int64(len(events)) < n {
				events = append(events, conversationTurn(len(events)+turn*5000)...)
			}
			events = events[:min(len(events), int(n-head))]
			done, err := s.Append(ctx, tapedeck.Append{Session: id, Events: events})
			if err != nil {
				return err
			}
			head = done.Next
		}
		if err := p.Advance(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// conversationTurn returns a question, a tool call and an answer of 90 deltas.
func conversationTurn(i int) []tapedeck.Event {
	run := fmt.Sprint("inv_", i)
	say := func(typ, format string, args ...any) tapedeck.Event {
		return tapedeck.Event{Type: typ, Invocation: run, Data: json.RawMessage(fmt.Sprintf(format, args...))}
	}
	events := []tapedeck.Event{
		say(tapedeck.MessageAdded, `{"message":{"id":"u%d","role":"user","content":"What is in file %d?"}}`, i, i),
		say(tapedeck.RunStarted, `{"threadId":"main","runId":%q}`, run),
		say(tapedeck.ToolCallStart, `{"toolCallId":"c%d","toolCallName":"Read"}`, i),
		say(tapedeck.ToolCallArgs, `{"toolCallId":"c%d","delta":"{\"path\":\"file\"}"}`, i),
		say(tapedeck.ToolCallEnd, `{"toolCallId":"c%d"}`, i),
		say(tapedeck.ToolCallResult, `{"toolCallId":"c%d","messageId":"r%d","content":"some text"}`, i, i),
		say(tapedeck.TextMessageStart, `{"messageId":"m%d"}`, i),
	}
	for range 490 {
		events = append(events, say(tapedeck.TextMessageContent, `{"messageId":"m%d","delta":"a few words "}`, i))
	}
	return append(events,
		say(tapedeck.TextMessageEnd, `{"messageId":"m%d"}`, i),
		say(tapedeck.UsageReported, `{"inputTokens":1000,"outputTokens":200}`),
		say(tapedeck.RunFinished, `{"threadId":"main","runId":%q}`, run))
}

// newestView opens the store and reads a view. It returns the time in milliseconds and the
// memory of the view in MiB.
func newestView(ctx context.Context, dir, id string, c viewCase) (took, heap float64, err error) {
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	p := projection.New(projection.Options{Store: s})
	err = c.look(ctx, p, id)
	took = ms(time.Since(begin))
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(p)
	return took, (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / (1 << 20), err
}
