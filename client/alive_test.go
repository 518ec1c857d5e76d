package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
)

// KeepAlive renews as often as the server wants, waits for a server that is away, and ends
// with its context or when the run is not open.
func TestKeepAlive(t *testing.T) {
	asked := make(chan api.Renewal)
	answers := make(chan int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in api.Renewal
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/api/v1/sessions/s/renew" {
			t.Errorf("%s: %v", r.URL, err)
		}
		asked <- in
		w.Header().Set("Content-Type", "application/json")
		if status := <-answers; status != http.StatusOK {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"kind":%q,"message":"no"}}`, map[int]string{503: "unavailable", 409: "conflict"}[status])
			return
		}
		fmt.Fprint(w, `{"session_id":"s","invocation_id":"r","lease_ms":30}`)
	}))
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	keep := func(ctx context.Context) {
		go func() { ended <- c.KeepAlive(ctx, "s", "r") }()
	}
	keep(t.Context())
	for _, status := range []int{200, 200, 503, 503, 200, 409} {
		if in := <-asked; in.Invocation != "r" {
			t.Errorf("it renews %q", in.Invocation)
		}
		answers <- status
	}
	if err := <-ended; tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("it ended with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	keep(ctx)
	<-asked
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	answers <- 200
}

// A run that nobody renews ends, and its thread takes the next one.
func TestRunOfADeadProgram(t *testing.T) {
	c, _ := newWriterServer(t)
	begin := func(run string) error {
		event := fmt.Sprintf(`{"type":"RUN_STARTED","invocation":%q,"data":{"threadId":"main","runId":%[1]q,"metadata":{"tapedeck":{"leaseMs":1000}}}}`, run)
		_, err := c.Append(t.Context(), "s", strings.NewReader(event), client.AppendOptions{})
		return err
	}
	if err := begin("dead"); err != nil {
		t.Fatal(err)
	}
	if err := begin("next"); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Fatalf("a second run: %v", err)
	}
	for r, err := range c.Follow(t.Context(), "s", client.FollowOptions{Until: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e, err := r.Event(); err != nil || e.Type == tapedeck.RunError && e.Invocation != "dead" {
			t.Fatalf("%s, %v", r.Data, err)
		}
	}
	if err := begin("next"); err != nil {
		t.Fatal(err)
	}
	done, err := c.Renew(t.Context(), api.Renewal{Session: "s", Invocation: "next"})
	if err != nil || done.LeaseMS != 1000 {
		t.Errorf("%+v, %v", done, err)
	}
	if err := c.KeepAlive(t.Context(), "s", "dead"); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Errorf("the run that has ended: %v", err)
	}
}
