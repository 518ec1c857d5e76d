package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// agents have a secret in each setting that can have one. All of them fail: what they reach
// repeats their requests.
const agents = `
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
[[agent]]
name = "program"
kind = "process"
dialect = "codex"
command = "/bin/false"
env = ["CANARY_ENV", "PAIR=canary-of-pair-1b7f"]
[[agent]]
name = "coder"
kind = "acp"
command = "/bin/false"
env = ["CANARY_ENV"]
[[agent.mcp]]
name = "local"
command = "/bin/false"
env = ["CANARY_MCPENV"]
`

// An installation is a server with secrets, and what it has said so far.
type installation struct {
	t      *testing.T
	server *testserver.Server
	token  string
	data   string
	auth   string
	said   map[string]string // where -> what
	plants map[string]string // name -> secret
}

// plant returns a new secret with a name.
func (h *installation) plant(name string) string {
	h.plants[name] = fmt.Sprintf("canary-of-%s-1b7f", name)
	return h.plants[name]
}

// TestNoSecretIsTold runs a server with SQLite.
func TestNoSecretIsTold(t *testing.T) {
	newInstallation(t).visit()
}

// TestNoSecretIsToldWithPostgres runs a server with PostgreSQL, whose password is in the
// command line.
func TestNoSecretIsToldWithPostgres(t *testing.T) {
	cluster := pgtest.Shared(t)
	database, err := cluster.Database()
	if err != nil {
		t.Fatal(err)
	}
	h := newInstallation(t, "--postgres", withPassword(t, cluster.URL(database), "canary-of-postgres-1b7f"))
	h.plants["postgres"] = "canary-of-postgres-1b7f"
	h.visit()
}

// withPassword adds a password to the URL of a database.
func withPassword(t *testing.T, address, password string) string {
	t.Helper()
	scheme, rest, ok := strings.Cut(address, "://")
	user, where, at := strings.Cut(rest, "@")
	if !ok || !at {
		t.Fatalf("%s is no URL with a user", address)
	}
	return scheme + "://" + user + ":" + password + "@" + where
}

func newInstallation(t *testing.T, args ...string) *installation {
	t.Helper()
	h := &installation{t: t, data: t.TempDir(), said: map[string]string{}, plants: map[string]string{"pair": "canary-of-pair-1b7f"}}
	echo := httptest.NewServer(http.HandlerFunc(repeat))
	t.Cleanup(echo.Close)
	for _, name := range []string{"KEY", "HEADER", "MCP", "A2A", "AGUI", "ENV", "MCPENV"} {
		t.Setenv("CANARY_"+name, h.plant(strings.ToLower(name)))
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", echo.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key="+h.plant("otlp"))
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	folder := t.TempDir()
	config := h.write(folder, "agents.toml", strings.ReplaceAll(agents, "URL", echo.URL))
	jwt := h.write(folder, "jwt-secret", h.plant("jwt")+strings.Repeat("x", 32))
	client := h.write(folder, "client-secret", h.plant("oidc"))
	h.auth = h.write(folder, "auth.toml", fmt.Sprintf(`
[jwt]
issuer = "https://login.example"
audience = "tapedeck"
secret_file = %q
default = "reader"
[oidc]
issuer = %q
client_id = "tapedeck"
client_secret_file = %q
redirect_url = "http://127.0.0.1:1/login"
default = "reader"
`, jwt, echo.URL, client))
	out, err := exec.Command(testserver.Binary(t), "token", "create", "--subject", "root", "--role", "admin", "--auth", h.auth, "--data", h.data).Output()
	if err != nil {
		t.Fatal(err)
	}
	h.token = strings.TrimSpace(string(out))
	h.plants["token"] = h.token
	h.server = testserver.Start(t, h.data, append([]string{"--config", config, "--auth", h.auth, "--verbose", "--webhook-allow", "127.0.0.0/8"}, args...)...)
	h.plantPush(echo.URL)
	return h
}

// repeat refuses a request and repeats all of it.
func repeat(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = fmt.Fprintf(w, `{"error":{"message":%q},"detail":%q}`, fmt.Sprint("you sent ", r.Header), fmt.Sprint(r.Header, string(body)))
}

func (h *installation) write(folder, name, text string) string {
	h.t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// call sends a request, keeps the answer under a name and returns it.
func (h *installation) call(method, path, body string) (status int, answer string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.server.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("A2A-Version", "1.0")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	h.said[method+" "+path] = fmt.Sprint(resp.Header) + string(b)
	return resp.StatusCode, string(b)
}

// plantPush gives the server a receiver of push notifications and one of webhooks that
// refuse what they get.
func (h *installation) plantPush(receiver string) {
	h.t.Helper()
	config := fmt.Sprintf(`{"url": "%s/push?key=%s", "token": %q, "authentication": {"scheme": "Bearer", "credentials": %q}}`,
		receiver, h.plant("push-url"), h.plant("push-token"), h.plant("push-credentials"))
	message := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","contextId":"pushed","parts":[{"text":"go"}]},"configuration":{"taskPushNotificationConfig":` + config + `}}}`
	if status, answer := h.call(http.MethodPost, "/a2a/program", message); status != http.StatusOK || strings.Contains(answer, `"error"`) {
		h.t.Fatalf("push: %d %s", status, answer)
	}
}

// visit does everything with the server that could tell a secret, and looks for them.
func (h *installation) visit() {
	h.t.Helper()
	for _, agent := range []string{"model", "tools", "other", "front", "program", "coder"} {
		h.call(http.MethodPost, "/api/v1/sessions", fmt.Sprintf(`{"id":"s-%s"}`, agent))
		status, answer := h.call(http.MethodPost, "/api/v1/sessions/s-"+agent+"/task", fmt.Sprintf(`{"agent":%q,"task":"go"}`, agent))
		if status >= 300 {
			h.t.Fatalf("%s: %d %s", agent, status, answer)
		}
		h.stream("s-" + agent)
	}
	h.call(http.MethodGet, "/login?with=oidc", "")
	h.routes()
	for _, format := range []string{"ndjson", "json", "markdown", "csv", "html", "asciicast"} {
		h.call(http.MethodPost, "/api/v1/sessions/s-model/export", fmt.Sprintf(`{"format":%q}`, format))
	}
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap"} {
		if status, answer := h.call(http.MethodGet, path, ""); status != http.StatusOK {
			h.t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	for _, args := range [][]string{
		{"agents", "--json"}, {"doctor", "--json"}, {"stats", "--json"}, {"audit", "--json"}, {"ls", "--json"}, {"search", "canary"},
		{"token", "ls", "--auth", h.auth, "--json"}, {"token", "create", "--auth", h.auth, "--role", "nobody"},
	} {
		cmd := exec.Command(testserver.Binary(h.t), append(args, "--data", h.data)...)
		cmd.Env = append(os.Environ(), "TAPEDECK_TOKEN="+h.token)
		out, _ := cmd.CombinedOutput() // a command that fails has its words, too
		h.said[strings.Join(args, " ")] = string(out)
	}
	h.server.Stop(h.t)
	h.said["the log"] = h.server.Log()
	h.files()
	h.look()
}

// stream reads a session to the end of its run, with the token in the URL.
func (h *installation) stream(session string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.server.URL+"/api/v1/sessions/"+session+"/stream?until=terminal&token="+h.token, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(b, []byte("RUN_ERROR")) {
		h.t.Fatalf("%s has not failed, so it proves nothing: %v %s", session, err, b)
	}
	h.said["the stream of "+session] = string(b)
}

// routes reads every resource of the HTTP API.
func (h *installation) routes() {
	h.t.Helper()
	_, text := h.call(http.MethodGet, "/api/v1/openapi.json", "")
	var description struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &description); err != nil || len(description.Paths) < 20 {
		h.t.Fatalf("openapi.json: %v", err)
	}
	answered := 0
	for _, path := range slices.Sorted(maps.Keys(description.Paths)) {
		if description.Paths[path]["get"] == nil || strings.HasSuffix(path, "/ws") || strings.HasSuffix(path, "/ws/replay") || strings.HasSuffix(path, "/stream") {
			continue // a stream has no end; visit reads one
		}
		path = strings.NewReplacer("{id}", "s-model", "{iid}", "i", "{name}", "n").Replace(path)
		if status, _ := h.call(http.MethodGet, "/api/v1"+path, ""); status == http.StatusOK {
			answered++
		}
	}
	if answered < 20 {
		h.t.Errorf("only %d resources were read", answered)
	}
}

// files reads all files of the data folder. The files of keys themselves are not looked at,
// but their keys are looked for elsewhere.
func (h *installation) files() {
	h.t.Helper()
	err := filepath.WalkDir(h.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		switch d.Name() {
		case "access.key", "push-key":
			h.plants[d.Name()] = strings.TrimSpace(string(b))
		case "webhook-keys.json":
		default:
			h.said[path] = string(b)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *installation) look() {
	h.t.Helper()
	for where, text := range h.said {
		for name, secret := range h.plants {
			if i := strings.Index(text, secret); i >= 0 && len(secret) > 8 {
				h.t.Errorf("%s tells the secret %q: …%q", where, name, text[max(0, i-80):min(len(text), i+40)])
			}
		}
	}
	if len(h.plants) < 14 || len(h.said) < 50 {
		h.t.Errorf("%d secrets, %d places: something was not planted or looked at", len(h.plants), len(h.said))
	}
}
