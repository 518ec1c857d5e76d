package channels_test

import (
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/rest/channels"
	"github.com/tapedeck/tapedeck/view"
)

// BenchmarkRow reads a published chunk from the log and writes its row.
func BenchmarkRow(b *testing.B) {
	const data = `{"messageId":"run_1.3","delta":"Some words of an agent, as many as usual. ","rawEvent":{"channel":"chunks","id":"c17","agentId":"coder","sessionId":"s","text":"Some words of an agent, as many as usual. ","turn":3,"timestamp":1705848000000},"timestamp":1705848000000}`
	line := fmt.Appendf(nil, `{"offset":17,"type":"TEXT_MESSAGE_CONTENT","channel":"chunks","timestamp":"2026-01-05T12:34:56.789Z","thread":"coder","invocation":"run_1","turn":3,"actor":"agent:coder","data":%s}`, data)
	rec := tapedeck.Record{Offset: 17, Data: line}
	r := channels.Reader{Session: "s"}
	var buf []byte
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e, err := rec.Event()
			if err != nil || !view.InChannels(&e) {
				b.Fatal(err)
			}
			row, err := r.Row(&e, 17)
			if err != nil || r.Note(&e) != nil {
				b.Fatal(err)
			}
			buf = row.AppendJSON(buf[:0])
		}
	})
	b.Run("piece", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			row, ok := r.AppendChunk(buf[:0], rec, 17)
			if buf = row; !ok {
				b.Fatal("it is not understood")
			}
		}
	})
}
