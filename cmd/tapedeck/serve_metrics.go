package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/server"
)

// newLogger returns the logger of a server, which writes lines of a format to w.
func newLogger(w io.Writer, format string, level slog.Level) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, usageError("--log-format is text or json, not %q", format)
}

// maxScrapers is the largest number of connections for metrics. One Prometheus needs one.
const maxScrapers = 32

// A metricsListener serves the metrics alone. The zero value serves nothing.
type metricsListener struct {
	url  string
	http *http.Server
}

// metricsExample is an address for --metrics.
const metricsExample = "127.0.0.1:9464"

// serveMetrics serves a handler of metrics at a listener, nothing if that is nil.
func serveMetrics(l net.Listener, h http.Handler, log *slog.Logger) metricsListener {
	if l == nil {
		return metricsListener{}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", h)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, problem.NoSuchPath(r.URL.Path), log)
	})
	out := metricsListener{"http://" + l.Addr().String() + "/metrics", server.NewHTTP(mux, log)}
	go func() {
		if err := server.Serve(out.http, l, maxScrapers, log); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the metrics are served no more", "error", err)
		}
	}()
	return out
}

func (m *metricsListener) close() {
	if m.http != nil {
		_ = m.http.Close() // a scrape that is cut off is tried again
	}
}
