// Package subscription implements the subscriptions of Durable Streams, under
// /v1/stream/__ds: it wakes a worker when streams or sessions have something new.
//
// A subscription watches the streams of a pattern or of a list. Of each it knows up to
// which offset the worker has acknowledged it; what is above that is pending. When
// something is pending, the subscription begins a wake: a webhook gets a signed request,
// or a stream gets a message and a worker claims the wake. A subscription has one wake
// at a time. Each wake has a higher generation, which fences off the workers of earlier
// wakes, and a lease, so that a worker that died does not hold it for ever.
//
// Everything that must survive a crash is in the store before anyone learns of it. What
// is pending is not stored: it follows from the offsets that were acknowledged and the
// heads of the sessions. A [Dispatcher] finds that out once when it starts; from then on
// it observes commits.
package subscription

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// The types of a subscription.
const (
	typeWebhook  = "webhook"
	typePullWake = "pull-wake"
)

// Limits of a subscription.
const (
	maxSubscriptions = 256
	maxStreams       = 1000 // explicit streams of one subscription
	maxPattern       = 512  // bytes
	maxDescription   = 1024 // bytes
	maxWorker        = 256  // bytes

	defaultLease = 30 * time.Second
	minLease     = time.Second
	maxLease     = 10 * time.Minute
)

// A config is what the PUT of a subscription asks for. Two are the same if their JSON is.
type config struct {
	Type        string        `json:"type"`
	Pattern     string        `json:"pattern,omitempty"`
	Streams     []string      `json:"streams,omitempty"` // sorted, each once
	Filter      string        `json:"filter,omitempty"`
	URL         string        `json:"url,omitempty"`
	WakeStream  string        `json:"wake_stream,omitempty"`
	Lease       time.Duration `json:"lease"`
	Description string        `json:"description,omitempty"`
}

// same reports whether c and o ask for the same subscription.
func (c *config) same(o *config) bool {
	a, b := *c, *o
	a.Streams, b.Streams = nil, nil
	return slices.Equal(c.Streams, o.Streams) && a.Type == b.Type && a.Pattern == b.Pattern && a.Filter == b.Filter &&
		a.URL == b.URL && a.WakeStream == b.WakeStream && a.Lease == b.Lease && a.Description == b.Description
}

// check reports what is wrong with c, apart from the URL of its webhook.
func (c *config) check() error {
	if c.Pattern == "" && len(c.Streams) == 0 {
		return invalid("the subscription has neither a pattern nor streams")
	}
	if err := checkPattern(c.Pattern); err != nil {
		return err
	}
	if err := c.checkStreams(); err != nil {
		return err
	}
	if _, ok := filters[c.Filter]; c.Filter != "" && !ok {
		return invalid("there is no filter %.64q", c.Filter).hint("the filters are run-finished, question-asked and task-added")
	}
	if c.Lease < minLease || c.Lease > maxLease {
		return invalid("lease_ttl_ms is not a number from %d to %d", minLease.Milliseconds(), maxLease.Milliseconds())
	}
	if !isText(c.Description, maxDescription) {
		return invalid("the description has more than %d bytes, or a control character", maxDescription)
	}
	switch c.Type {
	case typeWebhook:
		if c.URL == "" || c.WakeStream != "" {
			return invalid("a subscription of type webhook has webhook.url and no wake_stream")
		}
		return nil
	case typePullWake:
		return c.checkWakeStream()
	}
	return invalid("the type %.64q is neither webhook nor pull-wake", c.Type)
}

func (c *config) checkStreams() error {
	if len(c.Streams) > maxStreams {
		return tooMany("a subscription has at most %d explicit streams", maxStreams).hint("use a pattern")
	}
	for _, p := range c.Streams {
		if err := c.checkStream(p); err != nil {
			return err
		}
	}
	return nil
}

// checkStream reports why the subscription cannot have an explicit stream.
func (c *config) checkStream(path string) error {
	id, err := sessionOf(path)
	switch {
	case err != nil:
		return err
	case path == c.WakeStream:
		return invalid("the subscription would watch its own wake stream")
	case c.Filter != "" && strings.HasPrefix(id, tapedeck.StreamPrefix):
		return invalid("%.200q is a stream, and a filter selects events of sessions only", path)
	}
	return nil
}

func (c *config) checkWakeStream() error {
	switch id, err := sessionOf(c.WakeStream); {
	case c.URL != "" || c.WakeStream == "":
		return invalid("a subscription of type pull-wake has wake_stream and no webhook")
	case err != nil:
		return err
	case !strings.HasPrefix(id, tapedeck.StreamPrefix):
		return invalid("the wake stream %.200q is a session", c.WakeStream).hint("name a stream of JSON messages, such as wake/pool")
	}
	return nil
}

// isText reports whether s can be shown to people.
func isText(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

const sessions = "sessions/"

// sessionOf returns the id in the store of the stream or session with a path.
func sessionOf(path string) (string, error) {
	if id, ok := strings.CutPrefix(path, sessions); ok {
		if tapedeck.CheckID("the session's id", id) != nil {
			return "", invalid("%.200q is not the path of a session", path).hint("a session has the path sessions/ID; views of sessions cannot be watched")
		}
		return id, nil
	}
	if err := tapedeck.CheckPath(path); err != nil {
		return "", invalid("%.200q is not the path of a stream", path).because(err)
	}
	if first, _, _ := strings.Cut(path, "/"); first == "__ds" || first == "sessions" {
		return "", invalid("%.200q is not the path of a stream", path)
	}
	return tapedeck.StreamPrefix + path, nil
}

// pathOf is the inverse of sessionOf. It returns "" for what has no path.
func pathOf(id string, kind tapedeck.SessionKind) string {
	switch kind {
	case tapedeck.KindSession:
		return sessions + id
	case tapedeck.KindStream:
		return strings.TrimPrefix(id, tapedeck.StreamPrefix)
	}
	return ""
}

// pathOfID is pathOf for an id whose prefix says of what kind it is.
func pathOfID(id string) string {
	if strings.HasPrefix(id, tapedeck.StreamPrefix) {
		return pathOf(id, tapedeck.KindStream)
	}
	return pathOf(id, tapedeck.KindSession)
}
