package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/search"
)

func TestSearchOnTheWire(t *testing.T) {
	day := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		q    search.Query
		want string
	}{
		{search.Query{Text: `"a b" c*`}, "q=%22a+b%22+c%2A"},
		{search.Query{
			Text: "x", Session: "s", Kind: "tool", Role: "user", Status: tapedeck.StatusIdle, Agent: "bot", Owner: "a&b",
			From: day, To: day.Add(time.Hour), Cursor: "20", Limit: 5,
		}, "agent=bot&cursor=20&from=2026-01-05T00%3A00%3A00Z&kind=tool&limit=5&owner=a%26b&q=x&role=user&session=s&status=idle&to=2026-01-05T01%3A00%3A00Z"},
	} {
		var got string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"hits":[{"session":"s","offset":7,"thread":"main","kind":"tool","snippet":"«x»","timestamp":"2026-01-05T00:00:00Z"}],"next":"20","behind":2}`)
		}))
		conn, err := client.New(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		found, err := conn.Search(t.Context(), c.q)
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		if want := "GET /api/v1/search?" + c.want; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
		want := search.Result{Hits: []search.Hit{{Session: "s", Offset: 7, Thread: "main", Kind: "tool", Snippet: "«x»", Time: day}}, Next: "20", Behind: 2}
		if d := cmp.Diff(want, found); d != "" {
			t.Error(d)
		}
	}
}
