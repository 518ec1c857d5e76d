package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Only a session that asks for it stores presence events, and only until it is
// closed.
func TestPresenceIsStoredOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent)
		for id, labels := range map[string]map[string]string{"plain": nil, "kept": {api.PresenceLabel: api.PresenceStored}} {
			if _, err := w.Create(t.Context(), api.NewSession{ID: id, Labels: labels}); err != nil {
				t.Fatal(err)
			}
			here := func(action api.PresenceAction, user, cursor string) {
				t.Helper()
				if _, err := w.Presence(t.Context(), api.PresenceNote{Session: id, Action: action, User: user, Cursor: json.RawMessage(cursor)}); err != nil {
					t.Fatal(err)
				}
			}
			here(api.PresenceJoin, "ada", `1`)
			here(api.PresenceMove, "ada", `1`) // is still there: no event
			here(api.PresenceMove, "ada", `2`)
			here(api.PresenceJoin, "bob", `0`)
			here(api.PresenceLeave, "bob", `0`)
			<-time.After(2 * time.Minute) // of the bubble's time: ada has left
			here(api.PresenceJoin, "eve", `0`)
			if err := w.Close(t.Context(), id, ""); err != nil {
				t.Fatal(err)
			}
			here(api.PresenceLeave, "eve", `0`) // of a closed session: no event
			var got []string
			for _, e := range w.events(id) {
				if what, ok := strings.CutPrefix(e.Type, "presence."); ok {
					got = append(got, e.Actor+" "+what)
				}
			}
			want := map[string]string{"plain": "", "kept": "user:ada joined, user:ada moved, user:bob joined, user:bob left, user:ada left, user:eve joined"}[id]
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("%s has %q, want %q", id, s, want)
			}
		}
	})
}

func TestPresenceOfADeletedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent)
		w.create("s")
		n := api.PresenceNote{Session: "s", Action: api.PresenceJoin, User: "ada"}
		if all, err := w.Presence(t.Context(), n); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if err := w.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Presence(t.Context(), n); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("in a deleted session: %v", err)
		}
		w.create("s")
		if all, err := w.Present(t.Context(), "s"); err != nil || len(all) != 0 {
			t.Errorf("in the new one there is %v, %v", all, err)
		}
	})
}
