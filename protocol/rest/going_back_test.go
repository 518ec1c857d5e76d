package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	tdengine "github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A planner is an agent that makes a plan and waits until it is cancelled.
type planner struct{}

func (planner) Run(ctx context.Context, _ tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		yield(payload.NewEvent(payload.PlanUpdated{Entries: []payload.PlanEntry{{Content: "Look", Status: "in_progress"}}}), nil)
		<-ctx.Done()
	}
}

// A session is run, cancelled, resumed, rewound, undone and forked by the real engine.
func TestGoingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(memory.New(memory.Options{}))
		views := projection.New(projection.Options{Store: h})
		e := tdengine.New(tdengine.Options{Store: h, Views: views, Agents: []tdengine.Agent{{Agent: tapedeck.Agent{Name: "planner"}, Runner: planner{}}}})
		defer func() { _ = e.Shutdown(context.Background()) }()
		handler := rest.New(rest.Options{Verbs: e, Sessions: h, Views: views})
		ask := func(method, path, body string, into any) int {
			t.Helper()
			r := httptest.NewRequest(method, "/api/v1/sessions"+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			synctest.Wait()
			if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
				t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
			}
			return w.Code
		}
		do := func(path, body string, want int) (a struct {
			Session    string `json:"session_id"`
			Invocation string `json:"invocation_id"`
			Marker     string
			Offset     int64
			Status     string
			ID         string
			Cancelled  []string
		}) {
			t.Helper()
			if got := ask("POST", path, body, &a); got != want {
				t.Fatalf("POST %s: %d, want %d: %+v", path, got, want, a)
			}
			return a
		}
		said := func(id string) string {
			t.Helper()
			var a struct{ Messages []struct{ Text string } }
			ask("GET", "/"+id+"/messages", "", &a)
			return fmt.Sprint(a.Messages)
		}

		first := do("/run", `{"task":"One"}`, http.StatusAccepted)
		s := "/" + first.Session
		do(s+"/cancel", "", http.StatusOK)
		second := do(s+"/resume", `{"task":"Two"}`, http.StatusAccepted)
		var began tapedeck.Event
		for ev, err := range tapedeck.Events(t.Context(), h, first.Session, second.Offset+1) {
			if err != nil {
				t.Fatal(err)
			}
			began = ev
			break
		}
		if data := string(began.Data); !strings.Contains(data, `"resumes":"`+first.Invocation+`"`) || !strings.Contains(data, "→ Look [in_progress]") {
			t.Errorf("the run began with %s", data)
		}
		back := do(s+"/rewind", `{"before_invocation_id":"`+second.Invocation+`"}`, http.StatusOK)
		if len(back.Cancelled) != 1 || back.Cancelled[0] != second.Invocation || back.Status != "cancelled" {
			t.Errorf("got %+v", back)
		}
		if got := said(first.Session); got != "[{One}]" {
			t.Errorf("after the rewind: %s", got)
		}
		fork := do(s+"/fork", "", http.StatusCreated)
		do(s+"/undo", `{"marker":"`+back.Marker+`"}`, http.StatusOK)
		if got := said(first.Session); got != "[{One} {Two}]" {
			t.Errorf("after the undo: %s", got)
		}
		if got := said(fork.ID); got != "[{One}]" || fork.Status != "cancelled" {
			t.Errorf("the fork: %s %s", fork.Status, got)
		}
		do(s+"/clear", `{"thread":"none"}`, http.StatusNotFound)
		do(s+"/rewind", `{"before_invocation_id":"inv_x"}`, http.StatusNotFound)
	})
}
