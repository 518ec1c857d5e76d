package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

// usedRun appends a run that used tokens of a model.
func usedRun(t *testing.T, g *engine, session, agent, model, end string, tokens int) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, end)
	if err != nil {
		t.Fatal(err)
	}
	event := func(typ, data string) tapedeck.Event {
		return tapedeck.Event{Time: at, Type: typ, Invocation: "inv_" + session, Data: json.RawMessage(data)}
	}
	g.append(t, session,
		event("RUN_STARTED", fmt.Sprintf(`{"threadId":"main","runId":"r","metadata":{"tapedeck":{"agent":%q}}}`, agent)),
		event("RUN_FINISHED", fmt.Sprintf(`{"threadId":"main","runId":"r","usage":[{"model":%q,"inputTokens":%d,"costUsd":0.5}]}`, model, tokens)))
}

func usageText(u *api.Usage) string {
	var out []string
	for _, d := range u.Days {
		out = append(out, fmt.Sprintf("%s=%d", d.Day, d.Total))
	}
	for _, a := range u.Agents {
		out = append(out, fmt.Sprintf("%s=%d", a.Agent, a.Total))
	}
	for _, m := range u.Models {
		out = append(out, fmt.Sprintf("%s=%d", m.Model, m.Total))
	}
	return fmt.Sprintf("%d sessions: %s", u.Sessions, strings.Join(out, " "))
}

func TestUsage(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	for _, id := range []string{"a", "b", "c"} {
		g.session(t, id, 0)
	}
	usedRun(t, g, "a", "coder", "large", "2026-01-05T12:00:00Z", 100)
	usedRun(t, g, "b", "coder", "small", "2026-01-06T12:00:00Z", 10)
	usedRun(t, g, "c", "hello", "small", "2026-01-07T12:00:00Z", 1)
	for query, want := range map[string]string{
		"":                               "3 sessions: 2026-01-05=100 2026-01-06=10 2026-01-07=1 coder=110 hello=1 large=100 small=11",
		"?from=2026-01-06":               "2 sessions: 2026-01-06=10 2026-01-07=1 coder=10 hello=1 small=11",
		"?from=2026-01-06&to=2026-01-06": "1 sessions: 2026-01-06=10 coder=10 small=10",
		"?agent=hello":                   "1 sessions: 2026-01-07=1 hello=1 small=1",
		"?to=2025-12-31":                 "0 sessions: ",
	} {
		var u api.Usage
		sendJSON(t, handler, "GET", "/usage"+query, "", &u)
		if got := usageText(&u); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	var u api.Usage
	sendJSON(t, handler, "GET", "/usage", "", &u)
	if u.Total.Runs != 3 || u.Total.CostUSD == nil || *u.Total.CostUSD != 1.5 {
		t.Errorf("in all: %+v", u.Total)
	}
	for _, query := range []string{"?from=yesterday", "?to=2026-13-01", "?from=", "?from=2026-01-02&to=2026-01-01", "?day=2026-01-01", "?from=2026-01-01T00:00:00Z"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/usage"+query, nil))
		if w.Code != 400 {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
