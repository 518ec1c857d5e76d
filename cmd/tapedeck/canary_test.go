package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCanaries plants a secret in each setting of an agent that has one. Each agent fails in
// the worst way: the other side repeats the whole request in its error. No secret is in what
// the commands print, nor in any file of the data folder.
func TestCanaries(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q},"detail":%q}`, fmt.Sprint("you sent ", r.Header), fmt.Sprint(r.Header))
	}))
	defer echo.Close()
	for _, name := range []string{"KEY", "HEADER", "A2A", "AGUI", "MCP"} {
		t.Setenv("CANARY_"+name, "canary-of-"+strings.ToLower(name)+"-1b7f")
	}
	config := filepath.Join(t.TempDir(), "agents.toml")
	text := strings.ReplaceAll(`
[[agent]]
name = "model"
kind = "llm"
url = "URL/v1"
model = "m"
key_env = "CANARY_KEY"
headers = { "X-Key" = "${CANARY_HEADER}" }
[[agent]]
name = "tools"
kind = "llm"
url = "URL/v1"
model = "m"
[[agent.mcp]]
name = "remote"
url = "URL/mcp"
headers = { Authorization = "Bearer ${CANARY_MCP}" }
[[agent]]
name = "other"
kind = "a2a"
url = "URL/a2a"
headers = { Authorization = "Bearer ${CANARY_A2A}" }
[[agent]]
name = "front"
kind = "agui"
url = "URL/agui"
headers = { Authorization = "Bearer ${CANARY_AGUI}" }
`, "URL", echo.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	said := map[string]string{}
	look := func(args ...string) {
		_, out := call(t, append([]string{"--data", data, "--config", config}, args...)...)
		said[strings.Join(args, " ")] = out
	}
	for _, agent := range []string{"model", "tools", "other", "front"} {
		look("run", "--agent", agent, "go")
		if out := said["run --agent "+agent+" go"]; !strings.Contains(out, "401") && !strings.Contains(out, "cannot connect") {
			t.Errorf("%s has not failed as it should, so it proves nothing: %s", agent, out)
		}
	}
	for _, args := range [][]string{{"agents"}, {"agents", "--json"}, {"doctor"}, {"ls", "--json"}, {"search", "canary"}, {"stats"}} {
		look(args...)
	}
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		said[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, out := range said {
		if i := strings.Index(out, "canary-of-"); i >= 0 {
			t.Errorf("%s has %.60q", filepath.Base(where), out[max(0, i-20):])
		}
	}
}
