package durable

import (
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A filter selects events of a session. An empty filter selects all.
type filter struct{ types, channels, threads []string }

// empty reports whether all events pass.
func (f *filter) empty() bool { return len(f.types)+len(f.channels)+len(f.threads) == 0 }

// match reports whether e is selected. The events of the session's own channel pass every
// selection by channel and thread.
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

// String returns a text that identifies the filter.
func (f *filter) String() string {
	if f.empty() {
		return ""
	}
	return strings.Join(f.types, ",") + "&" + strings.Join(f.channels, ",") + "&" + strings.Join(f.threads, ",")
}
