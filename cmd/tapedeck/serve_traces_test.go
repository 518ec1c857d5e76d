package main

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/otlptest"
)

// TestTracesFollowTheEnvironment: without variables nothing is set; with them the spans
// arrive at the collector that they name.
func TestTracesFollowTheEnvironment(t *testing.T) {
	c := otlptest.Start(t)
	for name, test := range map[string]struct {
		env      map[string]string
		on, all  bool
		mistaken string
	}{
		"nothing":  {},
		"endpoint": {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}, on: true},
		"traces":   {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.URL + "/v1/traces"}, on: true},
		"sampler":  {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_TRACES_SAMPLER": "always_on"}, on: true, all: true},
		"disabled": {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_SDK_DISABLED": "true"}},
		"none":     {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_TRACES_EXPORTER": "none"}},
		"zipkin":   {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_TRACES_EXPORTER": "zipkin"}, mistaken: "OTEL_TRACES_EXPORTER"},
		"grpc":     {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, mistaken: "http/protobuf"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range test.env {
				t.Setenv(k, v)
			}
			o := deck.Options{Version: "v7", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
			stop, err := openTraces(t.Context(), &o)
			if test.mistaken != "" {
				if err == nil || !strings.Contains(err.Error(), test.mistaken) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || (o.Traces != nil) != test.on || o.TraceRequests != test.all {
				t.Fatalf("%v, %+v", err, o)
			}
			if test.on {
				_, span := o.Traces.Tracer("test").Start(t.Context(), name)
				span.End()
			}
			stop()
			if test.on {
				c.Named(t, name)
			}
		})
	}
	if c.Resource("service.name") != "tapedeck" || c.Resource("service.version") != "v7" {
		t.Errorf("the process is %q %q", c.Resource("service.name"), c.Resource("service.version"))
	}
}
