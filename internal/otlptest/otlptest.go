// Package otlptest is a small collector of OpenTelemetry for tests: it receives spans by
// OTLP over HTTP.
package otlptest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Collector keeps the spans that it receives.
type Collector struct {
	URL string // its address, for OTEL_EXPORTER_OTLP_ENDPOINT

	mu       sync.Mutex
	spans    []*spans.Span
	resource map[string]string
}

// Start starts a collector, which stops at the end of the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{resource: map[string]string{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.receive(r); err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) receive(r *http.Request) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var in collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &in); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range in.ResourceSpans {
		for _, a := range rs.Resource.GetAttributes() {
			c.resource[a.Key] = text(a.Value)
		}
		for _, s := range rs.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	return nil
}

// Spans returns the spans that have arrived, in the order in which they ended.
func (c *Collector) Spans() []*spans.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*spans.Span(nil), c.spans...)
}

// Named returns the only span of a name.
func (c *Collector) Named(t testing.TB, name string) *spans.Span {
	t.Helper()
	var out *spans.Span
	for _, s := range c.Spans() {
		if s.Name == name && out != nil {
			t.Fatalf("there are two spans %q", name)
		}
		if s.Name == name {
			out = s
		}
	}
	if out == nil {
		t.Fatalf("there is no span %q", name)
	}
	return out
}

// Resource returns an attribute of the process that sent the spans.
func (c *Collector) Resource(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource[key]
}

// Attribute returns an attribute of a span as text, "" for none.
func Attribute(s *spans.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return text(a.Value)
		}
	}
	return ""
}

func text(v *common.AnyValue) string {
	if n, ok := v.GetValue().(*common.AnyValue_IntValue); ok {
		return strconv.FormatInt(n.IntValue, 10)
	}
	return v.GetStringValue()
}
