package view_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

func manyEvents(n int) []tapedeck.Event {
	var out []tapedeck.Event
	at := time.UnixMilli(1_700_000_000_000)
	add := func(inv, typ, data string) {
		at = at.Add(37 * time.Millisecond)
		out = append(out, tapedeck.Event{Offset: int64(len(out)), Type: typ, Channel: tapedeck.ChannelOf(typ), Time: at, Invocation: inv, Data: json.RawMessage(data)})
	}
	for r := 0; len(out) < n; r++ {
		inv := fmt.Sprint("inv_", r)
		add(inv, tapedeck.MessageAdded, fmt.Sprintf(`{"message":{"id":"u%d","role":"user","content":"please"}}`, r))
		add(inv, tapedeck.RunStarted, fmt.Sprintf(`{"threadId":"main","runId":"%s"}`, inv))
		for k := range 5 {
			add(inv, tapedeck.TextMessageStart, fmt.Sprintf(`{"messageId":"m%d_%d"}`, r, k))
			for range 14 {
				add(inv, tapedeck.TextMessageContent, fmt.Sprintf(`{"messageId":"m%d_%d","delta":"a few words of text "}`, r, k))
			}
			add(inv, tapedeck.TextMessageEnd, fmt.Sprintf(`{"messageId":"m%d_%d"}`, r, k))
			add(inv, tapedeck.ToolCallStart, fmt.Sprintf(`{"toolCallId":"c%d_%d","toolCallName":"Edit"}`, r, k))
			add(inv, tapedeck.ToolCallArgs, fmt.Sprintf(`{"toolCallId":"c%d_%d","delta":"{\"file_path\":\"f%d\",\"old_string\":\"a\",\"new_string\":\"b\"}"}`, r, k, r%50))
			add(inv, tapedeck.ToolCallEnd, fmt.Sprintf(`{"toolCallId":"c%d_%d"}`, r, k))
			add(inv, tapedeck.ToolCallResult, fmt.Sprintf(`{"toolCallId":"c%d_%d","messageId":"r","content":"ok"}`, r, k))
		}
		add(inv, tapedeck.RunFinished, fmt.Sprintf(`{"threadId":"main","runId":"%s","usage":[{"model":"m","inputTokens":5}]}`, inv))
	}
	return out
}

func BenchmarkViews(b *testing.B) {
	events := manyEvents(100_000)
	b.Run("summary", func(b *testing.B) {
		for b.Loop() {
			f := summarize(0, events)
			raw, _ := json.Marshal(f)
			b.ReportMetric(float64(len(raw)), "state-bytes")
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			raw, _ := json.Marshal(index(events))
			b.ReportMetric(float64(len(raw)), "state-bytes")
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
	b.Run("index-pieces", func(b *testing.B) {
		var pieces []view.Index
		for i := 0; i < len(events); i += 1000 {
			pieces = append(pieces, *index(events[i : i+1000]))
		}
		for b.Loop() {
			var x view.Index
			for _, p := range pieces {
				x.Append(p)
			}
		}
	})
	b.Run("instances", func(b *testing.B) {
		for b.Loop() {
			instances(events)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
	})
}
