package exchange

import (
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/api"
)

// BenchmarkDecode decodes 10,000 lines of a session file, or 1,000 conversations.
func BenchmarkDecode(b *testing.B) {
	body := strings.Repeat("All work and no play. ", 20)
	for format, in := range map[string]string{
		OpenAIMessages: strings.Repeat(`{"messages":[`+strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"`+body+`"},{"role":"assistant","content":"`+body+`"},`, 5), ",")+"]}\n", 1000),
		ClaudeCode: strings.Repeat(`{"type":"user","uuid":"u","timestamp":"2026-01-05T10:00:00Z","message":{"content":"`+body+`"}}`+"\n"+
			`{"type":"assistant","timestamp":"2026-01-05T10:00:00Z","message":{"id":"a","content":[{"type":"text","text":"`+body+`"}]}}`+"\n", 5000),
	} {
		b.Run(format, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				d, err := NewDecoder(format, strings.NewReader(in), Options{})
				if err != nil {
					b.Fatal(err)
				}
				for _, err := range d.Events() {
					if err != nil {
						b.Fatal(err)
					}
					events++
				}
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkRedact looks for secrets in 10,000 events that have none.
func BenchmarkRedact(b *testing.B) {
	var lines []string
	size := 0
	for range 10_000 {
		lines = append(lines, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"`+strings.Repeat("All work and no play. ", 20)+`"}`)
		size += len(lines[0])
	}
	events := log(lines...)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		r := redactor(b, api.Redaction{Presets: []string{"secrets"}})
		for i := range events {
			r.Learn(&events[i])
		}
		r.Learn(nil)
	}
}
