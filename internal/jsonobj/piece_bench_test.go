package jsonobj

import (
	"encoding/json"
	"testing"
)

// BenchmarkPiece compares a piece with a string: both must take the same time.
func BenchmarkPiece(b *testing.B) {
	for _, of := range []struct{ name, data string }{
		{"plain", `{"messageId":"msg_01JABCDEFGHJKMNPQRSTVWXYZ0","delta":" the quick brown fox jumps over the lazy dog"}`},
		{"escaped", `{"messageId":"msg_01JABCDEFGHJKMNPQRSTVWXYZ0","delta":" the \"quick\" brown fox\n\tjumps over the lazy dog"}`},
		{"chinese", `{"messageId":"msg_01JABCDEFGHJKMNPQRSTVWXYZ0","delta":"敏捷的棕色狐狸跳过了懒狗"}`},
	} {
		data := []byte(of.data)
		b.Run(of.name+"/string", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var d struct {
					MessageID string `json:"messageId"`
					Delta     string `json:"delta"`
				}
				if json.Unmarshal(data, &d) != nil {
					b.Fatal()
				}
			}
		})
		b.Run(of.name+"/piece", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var d struct {
					MessageID string `json:"messageId"`
					Delta     Piece  `json:"delta"`
				}
				if json.Unmarshal(data, &d) != nil {
					b.Fatal()
				}
			}
		})
	}
}
