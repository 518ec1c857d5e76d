package durable

import (
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A filter selects events of a session. An empty one selects all.
type filter struct{ types, channels, threads []string }

func (f *filter) empty() bool { return len(f.types)+len(f.channels)+len(f.threads) == 0 }

// match reports whether e is selected. The session's own life is part of every
// selection of channels and threads.
func (f *filter) match(e *tapedeck.Event) bool {
	if len(f.types) > 0 && !slices.Contains(f.types, e.Type) {
		return false
	}
	if e.Channel == tapedeck.ChannelSession {
		return true
	}
	return (len(f.channels) == 0 || slices.Contains(f.channels, e.Channel)) &&
		(len(f.threads) == 0 || slices.Contains(f.threads, e.ThreadName()))
}

// String returns the same text for the same filter.
func (f *filter) String() string {
	if f.empty() {
		return ""
	}
	return strings.Join(f.types, ",") + "&" + strings.Join(f.channels, ",") + "&" + strings.Join(f.threads, ",")
}
