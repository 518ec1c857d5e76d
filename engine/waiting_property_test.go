package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/view"
)

// After any events that the log accepts, the catalogue and the conversation agree: the
// same questions of open runs are open, and the status is the same. A store decodes its
// entry from JSON at any time.
func TestWaitingProperty(t *testing.T) {
	lines := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) tapedeck.Event {
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(r, name) }
		e := tapedeck.Event{
			Type:   pick("type", "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "permission.requested", "permission.requested", "permission.answered"),
			Thread: pick("thread", "", "b", "c"), Invocation: pick("invocation", "i", "j", "k", "l", ""),
		}
		id, text := pick("id", "p", "q", "r"), pick("text", "", "May I?", strings.Repeat("long ", 50))
		switch e.Type {
		case "RUN_STARTED":
			e.Data = fmt.Appendf(nil, `{"runId":%q,"threadId":"t"}`, e.Invocation)
		case "RUN_FINISHED":
			e.Data = []byte(`{"threadId":"t","runId":"i","outcome":{"type":"success"}}`)
		case "RUN_ERROR":
			e.Data = []byte(`{"message":"m"}`)
		case "permission.requested":
			e.Data = fmt.Appendf(nil, `{"id":%q,"message":%q,"options":[{"id":"yes"}]}`, id, text)
		case "permission.answered":
			e.Data = fmt.Appendf(nil, `{"id":%q,"option":"yes"}`, id)
		}
		return e
	}), 1, 60)
	rapid.Check(t, func(r *rapid.T) {
		accepts, entry, shown := order.NewVerifier(), tapedeck.Session{Status: tapedeck.StatusIdle}, new(view.Conversation)
		var log []string
		for _, e := range lines.Draw(r, "events") {
			e.Channel = tapedeck.ChannelOf(e.Type)
			accepted, err := accepts.Accept([]tapedeck.Event{e})
			if err != nil {
				continue
			}
			for _, e := range accepted {
				e.Offset, e.Time = int64(len(log)), time.Date(2026, 1, 5, 12, 0, len(log), 0, time.UTC)
				log = append(log, fmt.Sprintf("%s %s/%s %s", e.Type, e.Thread, e.Invocation, e.Data))
				entry.Apply(&e)
				shown.Apply(&e)
			}
			b, err := json.Marshal(entry)
			var stored tapedeck.Session
			if err == nil {
				err = json.Unmarshal(b, &stored)
			}
			if err != nil || !slices.Equal(stored.Waiting, entry.Waiting) {
				r.Fatalf("%v is stored as %s: %v", entry.Waiting, b, err)
			}
			if err := sameQuestions(&entry, shown.Snapshot()); err != nil {
				r.Fatalf("%s\n%v", strings.Join(log, "\n"), err)
			}
		}
	})
}

// sameQuestions compares the entry of a session with its conversation. A question that no
// run asked stays open in the conversation, and nobody waits for it.
func sameQuestions(entry *tapedeck.Session, shown view.Snapshot) error {
	var want []int64
	for _, p := range shown.Permissions {
		open := slices.ContainsFunc(shown.Runs, func(r view.Run) bool {
			return r.Status == tapedeck.StatusRunning && r.Invocation == p.Invocation && r.Thread == p.Thread
		})
		if p.Status == view.PermissionOpen && open {
			want = append(want, p.Offset)
		}
	}
	var got []int64
	for _, q := range entry.Waiting {
		got = append(got, q.Offset)
	}
	switch {
	case !slices.Equal(got, want):
		return fmt.Errorf("the catalogue has the questions %v, the conversation %v", got, want)
	case len(entry.Runs) > 0 && entry.Status != shown.Session.Status, (entry.Status == tapedeck.StatusWaiting) != (len(want) > 0):
		return fmt.Errorf("the catalogue has the status %s, the conversation %s", entry.Status, shown.Session.Status)
	}
	return nil
}
