package server

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tapedeck/tapedeck/internal/hangup"
	"github.com/tapedeck/tapedeck/internal/intake"
)

// Limits of a connection. A handler may take any time for an answer. How long a write
// waits for the client is [hangup.WriteTimeout].
const (
	headerTimeout = 10 * time.Second // for the head of a request
	idleTimeout   = 2 * time.Minute  // between two requests
	maxHeader     = 64 << 10         // bytes of the head of a request
)

// NewHTTP returns an HTTP server of h, with deadlines for everything that a client can
// be slow at.
func NewHTTP(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       intake.Grace, // a body that keeps [intake.Rate] gets more
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Serve serves s on l with a limit of connections at once; 0 for no limit.
func Serve(s *http.Server, l net.Listener, connections int, log *slog.Logger) error {
	return hangup.Serve(s, l, hangup.Limit{Connections: connections, Warn: func(times int64, err error) {
		log.Warn("connections were refused; --max-connections and the limit of open files (ulimit -n) bound them",
			"times", times, "limit", connections, "error", err)
	}})
}
