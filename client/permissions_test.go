package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
)

func TestPermissionsOnTheWire(t *testing.T) {
	var asked string
	snapshot := `{"permissions":[{"id":"p"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = fmt.Sprint(r.Method, " ", r.URL.EscapedPath(), " ", string(body))
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, snapshot)
			return
		}
		_, _ = io.WriteString(w, `{"permission":"p","option":"yes","offset":7}`)
	}))
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done, err := c.Answer(t.Context(), api.Answer{Session: "s", Permission: "p/../q", Option: "yes"})
	if err != nil || done != (api.Answered{Permission: "p", Option: "yes", Offset: 7}) {
		t.Errorf("answered %+v, %v", done, err)
	}
	if want := `POST /api/v1/sessions/s/permissions/p%2F..%2Fq {"option":"yes"}`; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
	for answer, want := range map[string]int{snapshot: 1, `{}`: 0} {
		snapshot = answer
		got, err := c.Permissions(t.Context(), "s")
		if err != nil || len(got) != want || want > 0 && got[0].ID != "p" || asked != "GET /api/v1/sessions/s/snapshot " {
			t.Errorf("got %+v, %v; asked %s", got, err, asked)
		}
	}
}
