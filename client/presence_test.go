package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
)

func TestPresenceOnTheWire(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = fmt.Sprint(r.Method, " ", r.URL.EscapedPath(), " ", string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"present":[{"user":"ada","cursor":{"offset":4},"joinedAt":"2026-01-05T12:00:00.000Z"}]}`)
	}))
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := c.Presence(t.Context(), api.PresenceNote{
		Session: "s", Action: api.PresenceMove, User: "ada", Cursor: json.RawMessage(`{"offset":4}`),
	})
	if err != nil || len(all) != 1 || all[0].User != "ada" || string(all[0].Cursor) != `{"offset":4}` {
		t.Errorf("got %+v, %v", all, err)
	}
	if want := `POST /api/v1/sessions/s/presence {"action":"move","user":"ada","cursor":{"offset":4}}`; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
}
