package llm_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

type fixed string

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(f)))}, nil
}

// BenchmarkDelta measures the cost of a token from the wire to the engine.
func BenchmarkDelta(b *testing.B) {
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764657993,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}],"usage":null}` + "\n\n"
	w := newWorld()
	w.options.HTTPClient = &http.Client{Transport: fixed(strings.Repeat(chunk, b.N) + "data: [DONE]\n\n")}
	b.ReportAllocs()
	b.ResetTimer()
	for _, err := range w.runner().Run(context.Background(), task("go")) {
		if err != nil {
			b.Fatal(err)
		}
	}
}
