package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// TestSecretsOfTraces: what a collector repeats of the headers is not in the log, in no spelling.
func TestSecretsOfTraces(t *testing.T) {
	const key = "canary+key/of=spans"
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("X-Key")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, "you sent x%s_ %s %s", got, strings.ToUpper(got), base64.StdEncoding.EncodeToString([]byte(got)))
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=canary%2Bkey%2Fof%3Dspans")
	var log bytes.Buffer
	o := deck.Options{Version: "v7", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	stop, err := openTraces(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	_, span := o.Traces.Tracer("test").Start(t.Context(), "a")
	span.End()
	stop()
	said := log.String()
	if !strings.Contains(said, "you sent x…_ … …") {
		t.Errorf("the log says %q", said)
	}
	for _, s := range []string{key, strings.ToUpper(key), base64.StdEncoding.EncodeToString([]byte(key))} {
		if strings.Contains(said, s) {
			t.Errorf("%s is in %q", s, said)
		}
	}
}
