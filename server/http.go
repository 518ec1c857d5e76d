package server

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tapedeck/tapedeck/internal/hangup"
	"github.com/tapedeck/tapedeck/internal/intake"
)

// Deadlines of a connection. How long an answer may take to be made has no limit
// here, how long it waits for its reader is [hangup.WriteTimeout].
const (
	headerTimeout = 10 * time.Second // for the head of a request
	idleTimeout   = 2 * time.Minute  // between two requests
	maxHeader     = 64 << 10         // bytes of a head
)

// NewHTTP returns an HTTP server of h, with deadlines for all that a client may
// be slow with.
func NewHTTP(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       intake.Grace, // a body that keeps its pace gets more
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Serve serves s on l with at most so many connections at once; 0 is for no
// limit.
func Serve(s *http.Server, l net.Listener, connections int, log *slog.Logger) error {
	return hangup.Serve(s, l, hangup.Limit{Connections: connections, Warn: func(times int64, err error) {
		log.Warn("connections were refused; --max-connections and the limit of open files (ulimit -n) bound them",
			"times", times, "limit", connections, "error", err)
	}})
}
