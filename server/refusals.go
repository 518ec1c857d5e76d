package server

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/tapedeck/tapedeck/internal/intake"
)

// refusals logs requests that were refused for their token. Somebody who tries many tokens
// must be seen in the log, and must not fill the disk with it.
type refusals struct {
	logger *slog.Logger
	limit  *rate.Limiter
	missed atomic.Int64 // since the last line
}

// A line for each refusal up to refusalBurst, then one every refusalEvery.
const (
	refusalBurst = 20
	refusalEvery = 5 * time.Second
)

func newRefusals(l *slog.Logger) *refusals {
	return &refusals{logger: l, limit: rate.NewLimiter(rate.Every(refusalEvery), refusalBurst)}
}

func (l *refusals) log(r *http.Request) {
	if !l.limit.Allow() {
		l.missed.Add(1)
		return
	}
	attrs := []slog.Attr{
		slog.String("from", intake.Address(r)), slog.String("method", r.Method), slog.String("path", r.URL.Path), // never the query: it may have a token
	}
	if id := first(r.Header[requestID]); id != "" {
		attrs = append(attrs, slog.String("id", id))
	}
	if n := l.missed.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("others", n))
	}
	l.logger.LogAttrs(r.Context(), slog.LevelWarn, "a request was refused: it has no valid token", attrs...)
}
