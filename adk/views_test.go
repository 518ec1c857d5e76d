package adk_test

import (
	"bytes"
	"context"
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

// TestOtherViews: the search, the exports and the streams show a session of ADK like any
// other, and an export that is imported elsewhere is the same session for ADK.
func TestOtherViews(t *testing.T) {
	w := newWorld(t, "", true, callsWeather("Bern"), says("It pours."))
	w.must("How is the weather?")
	found, err := w.deck.Search(t.Context(), search.Query{Text: "pours"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "found", len(found.Hits), 1)
	server := httptest.NewServer(w.deck.Handler())
	defer server.Close()
	id := adk.LogID("app", "ada", "s1")
	get := func(path string) string {
		t.Helper()
		resp, err := http.Get(server.URL + "/api/v1/sessions/" + id + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, resp.Status, b)
		}
		return string(b)
	}
	for path, want := range map[string]string{
		"/events?format=task&from=0": `It pours.`,
		"/context":                   `rain in Bern`,
		"/replay-index":              `"kind":"tool","label":"weather"`,
		"/events?channel=toolCalls":  `"toolCallName":"weather"`,
		"/events/history":            `It pours.`,
		"/snapshot":                  `"arguments":"{\"city\":\"Bern\"}"`,
		"/tasks":                     `How is the weather?`,
	} {
		if body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s lacks %s:\n%s", path, want, body)
		}
	}
	post := func(path, body string) string {
		t.Helper()
		req, _ := http.NewRequest(http.MethodPost, server.URL+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("A2A-Version", "1.0")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	// kagent's screen rewinds with the metadata of a message.
	w.model.replies = []reply{says("Sorry.")}
	second := w.must("Again?")
	rewound := post("/a2a/app", `{"jsonrpc":"2.0","id":2,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","messageId":"m1","contextId":"`+id+`",
		"parts":[{"text":""}],"metadata":{"kagent_rewind_before_invocation_id":"`+second+`"}}}}`)
	check(t, "rewound "+rewound, strings.Contains(w.got(), "Again?"), false)
	agui := post("/agui/app/connect", `{"threadId":"`+id+`","runId":"r1","messages":[],"tools":[],"context":[],"state":{},"forwardedProps":{}}`)
	a2a := post("/a2a/app", `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"contextId":"`+id+`","historyLength":10,"includeArtifacts":true}}`)
	for name, body := range map[string]string{"AG-UI": agui, "A2A": a2a} {
		for _, want := range []string{"How is the weather?", "It pours.", "rain in Bern"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, body)
			}
		}
	}
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	file, err := c.Export(t.Context(), api.ExportRequest{Session: id, Format: "ndjson"})
	if err != nil {
		t.Fatal(err)
	}
	exported, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	other := newWorld(t, "", true)
	importInto(t, other, exported)
	check(t, "got after the import", other.got(), w.got())
}

func importInto(t *testing.T, w *world, exported []byte) {
	t.Helper()
	server := httptest.NewServer(w.deck.Handler())
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Import(context.Background(), api.ImportRequest{Format: "ndjson"}, bytes.NewReader(exported)); err != nil {
		t.Fatal(err)
	}
}
