package adk_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/adk"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/search"
)

// A site is a server of a deck.
type site struct {
	t   *testing.T
	url string
}

func newSite(t *testing.T, w *world) *site {
	t.Helper()
	server := httptest.NewServer(w.deck.Handler())
	t.Cleanup(server.Close)
	return &site{t, server.URL}
}

func (s *site) client() *client.Client {
	s.t.Helper()
	c, err := client.New(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func (s *site) do(method, path, body string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("A2A-Version", "1.0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Errorf("%s: %s %s", path, resp.Status, b)
	}
	return string(b)
}

func wants(t *testing.T, what, body string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(body, p) {
			t.Errorf("%s lacks %s:\n%s", what, p, body)
		}
	}
}

// askedAboutWeather returns a world in which an agent has called a tool.
func askedAboutWeather(t *testing.T) *world {
	w := newWorld(t, "", true, callsWeather("Bern"), says("It pours."), says("Sorry."))
	w.must("How is the weather?")
	return w
}

// TestOtherViews: the search and the HTTP API show a session of ADK like any other.
func TestOtherViews(t *testing.T) {
	w := askedAboutWeather(t)
	found, err := w.deck.Search(t.Context(), search.Query{Text: "pours"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "found", len(found.Hits), 1)
	s := newSite(t, w)
	for path, want := range map[string]string{
		"/events?format=task&from=0": `It pours.`,
		"/context":                   `rain in Bern`,
		"/replay-index":              `"kind":"tool","label":"weather"`,
		"/events?channel=toolCalls":  `"toolCallName":"weather"`,
		"/events/history":            `It pours.`,
		"/snapshot":                  `"arguments":"{\"city\":\"Bern\"}"`,
		"/tasks":                     `How is the weather?`,
	} {
		wants(t, path, s.do(http.MethodGet, "/api/v1/sessions/"+adk.LogID("app", "ada", "s1")+path, ""), want)
	}
}

// TestOtherProtocols: AG-UI and A2A show a session of ADK, and kagent's rewind changes what
// ADK gets.
func TestOtherProtocols(t *testing.T) {
	w := askedAboutWeather(t)
	s, id := newSite(t, w), adk.LogID("app", "ada", "s1")
	second := w.must("Again?")
	s.do(http.MethodPost, "/a2a/app", `{"jsonrpc":"2.0","id":2,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","messageId":"m1","contextId":"`+id+`",
		"parts":[{"text":""}],"metadata":{"kagent_rewind_before_invocation_id":"`+second+`"}}}}`)
	check(t, "got after the rewind", w.got(), "user: How is the weather?; model calls weather map[city:Bern]; weather answers map[report:rain in Bern]; model: It pours.;")
	agui := s.do(http.MethodPost, "/agui/app/connect", `{"threadId":"`+id+`","runId":"r1","messages":[],"tools":[],"context":[],"state":{},"forwardedProps":{}}`)
	wants(t, "AG-UI", agui, "How is the weather?", "It pours.", "rain in Bern")
	a2a := s.do(http.MethodPost, "/a2a/app", `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"contextId":"`+id+`","historyLength":10,"includeArtifacts":true}}`)
	wants(t, "A2A", a2a, "How is the weather?", "It pours.", "rain in Bern")
}

// TestImport: an export that is imported elsewhere is the same session for ADK.
func TestImport(t *testing.T) {
	w := askedAboutWeather(t)
	file, err := newSite(t, w).client().Export(t.Context(), api.ExportRequest{Session: adk.LogID("app", "ada", "s1"), Format: "ndjson"})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	other := newWorld(t, "", true)
	if _, err := newSite(t, other).client().Import(t.Context(), api.ImportRequest{Format: "ndjson"}, file); err != nil {
		t.Fatal(err)
	}
	check(t, "got after the import", other.got(), w.got())
}
