package presence_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/presence"
)

func note(action api.PresenceAction, user, cursor string) api.PresenceNote {
	n := api.PresenceNote{Session: "s", Action: action, User: user}
	if cursor != "" {
		n.Cursor = json.RawMessage(cursor)
	}
	return n
}

func must(t *testing.T, tr *presence.Tracker, n api.PresenceNote) string {
	t.Helper()
	p, changed, err := tr.Note(n)
	if err != nil {
		t.Fatal(err)
	}
	if !changed {
		return ""
	}
	return payload.NewEvent(p).Type
}

func users(tr *presence.Tracker) string {
	var all []string
	for _, p := range tr.Present("s") {
		all = append(all, p.User+string(p.Cursor))
	}
	return strings.Join(all, " ")
}

// changes returns the changes that a watcher reports.
func changes(w api.PresenceWatcher) string {
	var all []string
	for _, e := range w.Changes() {
		var d payload.Presence
		_ = json.Unmarshal(e.Data, &d)
		all = append(all, strings.TrimPrefix(e.Type, "presence.")+" "+d.User+string(d.Cursor))
	}
	return strings.Join(all, ", ")
}

func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := presence.New(0, nil)
		for _, step := range []struct {
			note       api.PresenceNote
			want, here string
		}{
			{note(api.PresenceJoin, "ada", ""), "presence.joined", "ada"},
			{note(api.PresenceMove, "bob", `{"offset":3}`), "presence.joined", `ada bob{"offset":3}`},
			{note(api.PresenceMove, "bob", `{"offset":3}`), "", `ada bob{"offset":3}`},
			{note(api.PresenceMove, "bob", ""), "", `ada bob{"offset":3}`},
			{note(api.PresenceJoin, "bob", `{"offset":4}`), "presence.moved", `ada bob{"offset":4}`},
			{note(api.PresenceLeave, "eve", ""), "", `ada bob{"offset":4}`},
			{note(api.PresenceLeave, "bob", ""), "presence.left", "ada"},
			{note(api.PresenceLeave, "bob", ""), "", "ada"},
		} {
			if got := must(t, tr, step.note); got != step.want {
				t.Errorf("%s of %s: %q, want %q", step.note.Action, step.note.User, got, step.want)
			}
			if got := users(tr); got != step.here {
				t.Errorf("then %q is there, want %q", got, step.here)
			}
			<-time.After(time.Millisecond) // users are sorted by when they joined
		}
		tr.Clear("s")
		if got := users(tr); got != "" {
			t.Errorf("%q is in a session that was cleared", got)
		}
	})
}

// A user without a report leaves after a minute. A user who repeats a report does
// not.
func TestUsersWithoutReportsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone []string
		tr := presence.New(0, func(session string, p payload.Presence) {
			gone = append(gone, fmt.Sprint(session, " ", p.User, " ", time.Now().UTC().Format(time.TimeOnly)))
		})
		must(t, tr, note(api.PresenceJoin, "ada", ""))
		must(t, tr, note(api.PresenceJoin, "bob", ""))
		w := tr.Watch("s")
		changes(w)
		for range 6 {
			<-time.After(20 * time.Second)
			must(t, tr, note(api.PresenceMove, "ada", ""))
		}
		synctest.Wait()
		if want := []string{"s bob 00:01:00"}; !slices.Equal(gone, want) {
			t.Errorf("the absent users are %v, want %v", gone, want)
		}
		if got := changes(w); got != "left bob" {
			t.Errorf("the watcher reports %q", got)
		}
		w.Stop()
		<-time.After(2 * presence.DefaultTimeout)
		if got := users(tr); got != "" {
			t.Errorf("%q is still there", got)
		}
	})
}

func TestWatchers(t *testing.T) {
	tr := presence.New(0, nil)
	must(t, tr, note(api.PresenceJoin, "ada", ""))
	w := tr.Watch("s")
	defer w.Stop()
	if got := changes(w); got != "joined ada" {
		t.Errorf("at first %q", got)
	}
	must(t, tr, note(api.PresenceMove, "ada", "1"))
	must(t, tr, note(api.PresenceMove, "ada", "2"))
	must(t, tr, note(api.PresenceJoin, "bob", ""))
	must(t, tr, note(api.PresenceJoin, "eve", ""))
	must(t, tr, note(api.PresenceLeave, "eve", ""))
	<-w.Changed()
	if got := changes(w); got != "moved ada2, joined bob" {
		t.Errorf("then %q", got)
	}
	select {
	case <-w.Changed():
		t.Error("it is notified of changes that it reported")
	default:
	}
	tr.Clear("s")
	<-w.Changed()
	if got := changes(w); got != "left ada2, left bob" {
		t.Errorf("at last %q", got)
	}
}

func TestInvalidNotes(t *testing.T) {
	tr := presence.New(0, nil)
	for name, test := range map[string]struct {
		note api.PresenceNote
		want tapedeck.Kind
	}{
		"no user":         {note(api.PresenceJoin, "", ""), tapedeck.Invalid},
		"a path":          {note(api.PresenceJoin, "../x", ""), tapedeck.Invalid},
		"no such action":  {note("dance", "ada", ""), tapedeck.Invalid},
		"broken cursor":   {note(api.PresenceJoin, "ada", "{"), tapedeck.Invalid},
		"a large cursor":  {note(api.PresenceJoin, "ada", `"`+strings.Repeat("x", 4<<10)+`"`), tapedeck.TooLarge},
		"a crowd (below)": {note(api.PresenceJoin, "u256", ""), tapedeck.TooLarge},
	} {
		if name == "a crowd (below)" {
			for i := range 256 {
				must(t, tr, note(api.PresenceJoin, fmt.Sprintf("u%d", i), ""))
			}
		}
		if _, _, err := tr.Note(test.note); tapedeck.KindOf(err) != test.want {
			t.Errorf("%s: %v", name, err)
		}
		tr.Clear("s")
	}
}

// A session without users and watchers is dropped.
func TestUnusedSessionsAreDropped(t *testing.T) {
	tr := presence.New(0, nil)
	for i := range 20_000 { // more than there may be at a time
		n := note(api.PresenceJoin, "ada", "")
		n.Session = fmt.Sprintf("s%d", i)
		must(t, tr, n)
		w := tr.Watch(n.Session)
		n.Action = api.PresenceLeave
		must(t, tr, n)
		w.Stop()
	}
}
