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
	"github.com/tapedeck/tapedeck/internal/secret"
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
	log, secrets := o.Logger, spanSecrets()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("spans could not be sent", "error", secrets.Line(err.Error(), maxSpanError))
	}))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	o.Traces, o.TraceRequests = provider, os.Getenv("OTEL_TRACES_SAMPLER") != ""
	return func() { shutDown(provider, log, secrets) }, nil
}

// maxSpanError is how many characters the log has of an error of the exporter.
const maxSpanError = 1000

// spanSecrets returns the secrets of what the exporter sends. Its errors have the answer of the
// collector, which can repeat the request with its key.
func spanSecrets() *secret.Words {
	var values []string
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for header := range strings.SplitSeq(os.Getenv(name), ",") {
			_, value, _ := strings.Cut(header, "=")
			values = append(values, value)
			if decoded, err := url.PathUnescape(value); err == nil { // the variable has values in this encoding
				values = append(values, decoded)
			}
		}
	}
	return secret.WordsOf(endpoint(), nil, strings.Join(values, " "))
}

// endpoint returns the address of the collector, "" for none.
func endpoint() string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

func shutDown(p *sdktrace.TracerProvider, log *slog.Logger, secrets *secret.Words) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		log.Warn("the last spans could not be sent", "error", secrets.Line(err.Error(), maxSpanError))
	}
}

// wantsTraces reports whether the variables name a collector, and refuses what this
// program cannot do.
func wantsTraces() (bool, error) {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if endpoint() == "" || exporter == "none" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
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
