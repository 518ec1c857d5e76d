package tapedeck_test

import (
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

// TestActive: a session is active with its conversation, at most once a second, and not
// with each event of a run.
func TestActive(t *testing.T) {
	s := tapedeck.Session{Created: noon}
	for _, e := range []tapedeck.Event{{Type: tapedeck.SessionImported, Channel: tapedeck.ChannelSession}, {Type: "presence.joined", Channel: tapedeck.ChannelPresence}} {
		e.Time = noon
		if s.Apply(&e); !s.Active.IsZero() {
			t.Errorf("%s is activity", e.Type)
		}
	}
	for i, step := range []struct {
		typ, channel string
		ms, want     int
	}{
		{"acme.x", "", -5000, -5000}, // an import: older than the entry
		{"acme.x", "", -4001, -5000},
		{"acme.x", "", -4000, -4000},
		{tapedeck.RunStarted, "", -3999, -3999},
		{"acme.x", "", 90_000, -3999},
		{tapedeck.BookmarkAdded, tapedeck.ChannelSession, 95_000, -3999},
		{tapedeck.RunFinished, "", 90_001, 90_001},
		{"acme.x", "", 1000, 90_001},
	} {
		e := tapedeck.Event{Type: step.typ, Channel: step.channel, Invocation: "i", Time: noon.Add(time.Duration(step.ms) * time.Millisecond)}
		s.Apply(&e)
		if got := s.Active.Sub(noon).Milliseconds(); got != int64(step.want) {
			t.Fatalf("step %d: %d ms, want %d", i, got, step.want)
		}
	}
}
