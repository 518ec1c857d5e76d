package main

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tapedeck/tapedeck/deck"
)

// flushTime is how long the end of a server waits for the collector of its spans.
const flushTime = 5 * time.Second

// openTraces sends the spans of a deck to the collector that the OTEL_ variables name. It
// changes nothing if they name none. Call stop after the deck was closed.
func openTraces(ctx context.Context, o *deck.Options) (stop func(), err error) {
	if on, err := wantsTraces(); err != nil || !on {
		return func() {}, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, usageError("the variables OTEL_EXPORTER_OTLP_… are not valid: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "tapedeck"), attribute.String("service.version", o.Version),
	), resource.WithFromEnv()) // the last one counts
	if err != nil {
		return nil, usageError("OTEL_RESOURCE_ATTRIBUTES is not valid: %w", err)
	}
	log, hidden := o.Logger, hideHeaders()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("spans could not be sent", "error", hidden.Replace(err.Error()))
	}))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	o.Traces, o.TraceRequests = provider, os.Getenv("OTEL_TRACES_SAMPLER") != ""
	return func() { shutDown(provider, log, hidden) }, nil
}

// hideHeaders replaces the values of the headers that the exporter sends. Its errors have
// the answer of the collector, which can repeat the request with its key.
func hideHeaders() *strings.Replacer {
	var pairs []string
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for header := range strings.SplitSeq(os.Getenv(name), ",") {
			_, value, _ := strings.Cut(header, "=")
			value = strings.TrimSpace(value)
			decoded, err := url.PathUnescape(value) // the variable has values in this encoding
			for _, v := range []string{value, decoded} {
				if err == nil && v != "" {
					pairs = append(pairs, v, "[hidden]")
				}
			}
			if _, token, ok := strings.Cut(decoded, " "); ok && token != "" { // Bearer and a token
				pairs = append(pairs, token, "[hidden]")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

func shutDown(p *sdktrace.TracerProvider, log *slog.Logger, hidden *strings.Replacer) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		log.Warn("the last spans could not be sent", "error", hidden.Replace(err.Error()))
	}
}

// wantsTraces reports whether the variables name a collector, and refuses what this
// program cannot do.
func wantsTraces() (bool, error) {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if endpoint == "" || exporter == "none" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	if exporter != "" && exporter != "otlp" {
		return false, usageError("OTEL_TRACES_EXPORTER is otlp or none, not %q", exporter)
	}
	switch p := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); p {
	case "", "http/protobuf":
		return true, nil
	default:
		return false, usageError("OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf, not %q; its port is usually 4318", p)
	}
}
