package task

import (
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// BenchmarkPiece encodes a piece of text, as most events of a stream are.
func BenchmarkPiece(b *testing.B) {
	line := fmt.Appendf(nil, `{"offset":17,"type":"TEXT_MESSAGE_CONTENT","channel":"chunks","timestamp":"2026-01-05T12:34:56.789Z","invocation":"r","actor":"agent:coder","data":{"messageId":"m","delta":"Some words of an agent, as many as usual. "}}`)
	t := encoder{runs: map[string]*run{"r": {}}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		e, err := tapedeck.Record{Offset: 17, Data: line}.Event()
		if err != nil {
			b.Fatal(err)
		}
		out, err := t.encode(b.Context(), &e)
		if err != nil || len(out) != 1 {
			b.Fatal(err)
		}
		if buf, err = out[0].appendFrame(buf[:0], nil); err != nil {
			b.Fatal(err)
		}
	}
}
