package search

import (
	"strings"
	"testing"
)

func BenchmarkWords(b *testing.B) {
	for name, text := range map[string]string{
		"ascii":   strings.Repeat("func TestSomething of the package with some words ", 20),
		"chinese": strings.Repeat("我喜欢自行车和火车，使用Tapedeck服务器。", 20),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Words(text)
			}
		})
	}
}
