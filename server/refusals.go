package server

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/secret"
)

// refusals logs requests that were refused for their token. Somebody who tries many tokens
// must be seen in the log, and must not fill the disk with it.
type refusals struct {
	logger *slog.Logger
	limit  *rate.Limiter

	mu     sync.Mutex
	missed int64 // refusals that no line has told of; a timer runs while there are some
}

// A line for each refusal up to refusalBurst, then one every refusalEvery.
const (
	refusalBurst = 20
	refusalEvery = 5 * time.Second
)

func newRefusals(l *slog.Logger) *refusals {
	return &refusals{logger: l, limit: rate.NewLimiter(rate.Every(refusalEvery), refusalBurst)}
}

// log logs a request, with why it was refused if reason is not "".
func (l *refusals) log(r *http.Request, reason string) {
	if !l.limit.Allow() {
		l.miss()
		return
	}
	attrs := []slog.Attr{
		slog.String("from", intake.Address(r)), slog.String("method", secret.Cut(r.Method)), slog.String("path", secret.Path(r)),
	}
	if id := first(r.Header[requestID]); id != "" {
		attrs = append(attrs, slog.String("id", id))
	}
	if reason != "" {
		attrs = append(attrs, slog.String("reason", secret.Cut(reason)))
	}
	l.logger.LogAttrs(r.Context(), slog.LevelWarn, "a request was refused: it has no valid token", attrs...)
}

// miss counts a refusal without a line of its own. A line tells of all of them a moment later,
// also if no other refusal follows.
func (l *refusals) miss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missed++; l.missed > 1 {
		return
	}
	time.AfterFunc(refusalEvery, func() {
		l.mu.Lock()
		n := l.missed
		l.missed = 0
		l.mu.Unlock()
		l.logger.Warn("more requests were refused: they have no valid token", "requests", n)
	})
}
