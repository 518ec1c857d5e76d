package view_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// TestPermissionsSettle: open permissions stay in memory up to a bound, others
// settle, the oldest first. A checkpoint in the middle changes nothing.
func TestPermissionsSettle(t *testing.T) {
	c := new(view.Conversation)
	offset := int64(0)
	apply := func(typ, data string) {
		c.Apply(&tapedeck.Event{Offset: offset, Type: typ, Channel: tapedeck.ChannelOf(typ), Invocation: "i", Data: json.RawMessage(data)})
		offset++
	}
	ask := func(id string) {
		apply(tapedeck.PermissionRequested, fmt.Sprintf(`{"id":%q,"options":[{"id":"y"}]}`, id))
	}
	ask("first")
	for i := range 3 * view.Window {
		ask(fmt.Sprint("p", i))
		apply(tapedeck.PermissionAnswered, fmt.Sprintf(`{"id":"p%d","option":"y"}`, i))
		if i == view.Window {
			b, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			c = new(view.Conversation)
			if err := json.Unmarshal(b, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := c.Snapshot().Permissions
	if len(got) != view.Window || got[0].ID != "first" || got[0].Status != view.PermissionOpen || got[1].ID != fmt.Sprint("p", 2*view.Window+1) {
		t.Errorf("%d are left, from %s and %s on", len(got), got[0].ID, got[1].ID)
	}
	apply(tapedeck.PermissionAnswered, `{"id":"p0","option":"y"}`) // its permission has settled
	c.Apply(&tapedeck.Event{Offset: offset, Type: tapedeck.PermissionRequested, Invocation: "other", Data: json.RawMessage(`{"id":"first"}`)})
	offset++
	apply(tapedeck.PermissionAnswered, `{"id":"first","option":"y"}`)
	for _, p := range c.Snapshot().Permissions {
		if want := p.Invocation == "other"; p.ID == "first" && (p.Status == view.PermissionOpen) != want {
			t.Errorf("first, of %s, is %s", p.Invocation, p.Status)
		}
	}
	for i := range 10 * view.Window {
		ask(fmt.Sprint("q", i))
	}
	if n := len(c.Snapshot().Permissions); n > 4*view.Window {
		t.Errorf("%d are kept without an answer", n)
	}
}
