package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// TestErasedIsNowhere: a word is in every kind of text that a session can have. All
// endpoints and views of the session and of its fork return it. After the erasure none
// returns it, although the views were loaded, and no file has it.
func TestErasedIsNowhere(t *testing.T) {
	dir := t.TempDir()
	a, err := openApp(t.Context(), appOptions{dir: dir, anyHost: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.close() }()
	createSecretSession(t, a)
	other := "Another title" // the title of a fork is not erased with its parent
	if _, err := a.Session("s").Fork(t.Context(), api.Fork{ID: "f", Title: &other}); err != nil {
		t.Fatal(err)
	}
	if found := answersWithWord(t, a); len(found) < 50 {
		t.Fatalf("only %v return the word; the test proves little", found)
	}
	if _, err := a.Session("s").Erase(t.Context(), api.Erase{All: true}); err != nil {
		t.Fatal(err)
	}
	inFiles(t, dir) // before a request computes a view again
	if found := answersWithWord(t, a); len(found) > 0 {
		t.Errorf("%v still return it", found)
	}
}

const word = "xyzzy"

// createSecretSession creates a session that is full of the word.
func createSecretSession(t *testing.T, a *app) {
	t.Helper()
	if _, err := a.Create(t.Context(), api.NewSession{ID: "s", Title: "About " + word, Labels: map[string]string{"about": word}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Session("s").Rename(t.Context(), api.Rename{Labels: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	var events []tapedeck.Event
	add := func(typ, thread, data string) {
		events = append(events, tapedeck.Event{Type: typ, Thread: thread, Data: []byte(strings.ReplaceAll(data, "~", word))})
	}
	for i, thread := range []string{"main", "sub"} { // the second one is that of a sub-agent
		add(tapedeck.MessageAdded, thread, fmt.Sprintf(`{"message":{"id":"u%d","role":"user","content":"about ~"}}`, i))
		add("RUN_STARTED", thread, fmt.Sprintf(`{"threadId":"t","runId":"r%d"%s}`, i, []string{"", `,"parentRunId":"r0"`}[i]))
		add("STATE_SNAPSHOT", thread, `{"snapshot":{"~":"~"}}`)
		add(tapedeck.PlanUpdated, thread, `{"entries":[{"content":"look for ~"}]}`)
		add("REASONING_MESSAGE_START", thread, fmt.Sprintf(`{"messageId":"q%d"}`, i))
		add("REASONING_MESSAGE_CONTENT", thread, fmt.Sprintf(`{"messageId":"q%d","delta":"hm, ~"}`, i))
		add("REASONING_MESSAGE_END", thread, fmt.Sprintf(`{"messageId":"q%d"}`, i))
		add("TEXT_MESSAGE_START", thread, fmt.Sprintf(`{"messageId":"m%d","role":"assistant"}`, i))
		add("TEXT_MESSAGE_CONTENT", thread, fmt.Sprintf(`{"messageId":"m%d","delta":"it is ~","note":"~"}`, i))
		add("TEXT_MESSAGE_END", thread, fmt.Sprintf(`{"messageId":"m%d"}`, i))
		add("TOOL_CALL_START", thread, fmt.Sprintf(`{"toolCallId":"c%d","toolCallName":"Write"}`, i))
		add("TOOL_CALL_ARGS", thread, fmt.Sprintf(`{"toolCallId":"c%d","delta":"{\"file_path\":\"~\",\"content\":\"~\"}"}`, i))
		add("TOOL_CALL_END", thread, fmt.Sprintf(`{"toolCallId":"c%d"}`, i))
		add("TOOL_CALL_RESULT", thread, fmt.Sprintf(`{"toolCallId":"c%d","messageId":"t%d","content":"~"}`, i, i))
		add(tapedeck.TerminalOutput, thread, `{"terminal":"x","data":"~"}`)
		add("acme.unknown", thread, `{"about":"~"}`)
	}
	add("RUN_ERROR", "sub", `{"message":"~"}`)
	add("RUN_FINISHED", "main", `{"result":"~"}`)
	if _, err := a.Append(t.Context(), tapedeck.Append{Session: "s", Events: events}); err != nil {
		t.Fatal(err)
	}
}

// answersWithWord returns the requests whose answer has the word.
func answersWithWord(t *testing.T, a *app) (found []string) {
	t.Helper()
	ask := func(method, path, body string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), word) {
			found = append(found, path+" "+body)
		}
	}
	ask("GET", "/api/v1/sessions", "")
	ask("GET", "/api/v1/search?q=looking", "") // lets the index catch up
	ask("GET", "/api/v1/search?q="+word[:3]+"*", "")
	for _, id := range []string{"s", "f"} {
		s := "/api/v1/sessions/" + id
		for _, view := range []string{
			"", "/events", "/events/history", "/events?format=task", "/snapshot", "/snapshot?at=20", "/snapshot?thread=sub", "/messages", "/state", "/plan",
			"/summary", "/tasks", "/threads", "/instances", "/branches", "/replay-index", "/context",
		} {
			ask("GET", s+view, "")
		}
		for _, format := range []string{"json", "ndjson", "markdown", "csv", "asciicast"} {
			ask("POST", s+"/export", `{"format":"`+format+`"}`)
		}
		for _, view := range []string{"", "/views/agui", "/views/messages", "/views/state", "/views/text"} {
			ask("GET", "/v1/stream/sessions/"+id+view, "")
		}
	}
	return found
}

// inFiles reports all files in a folder that have the word.
func inFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(word)) {
			t.Errorf("%s has it", filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
