package guides

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestReceiver runs the receiver of webhooks of docs/protocol/durable-streams.md with the
// real program. It must print a run that finishes, and refuse a request without a
// signature.
func TestReceiver(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	page, err := os.ReadFile("../../docs/protocol/durable-streams.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```js\n(.*?)```").FindSubmatch(page)
	if code == nil || strings.Count(string(code[1]), "\n") != 20 {
		t.Fatal("the page has no receiver of 20 lines")
	}
	file := filepath.Join(t.TempDir(), "receiver.mjs")
	if err := os.WriteFile(file, code[1], 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, t.TempDir(), "--webhook-allow", "127.0.0.1")
	address := freeAddress(t)
	cmd := exec.Command(node, file, server.URL, address[strings.LastIndex(address, ":")+1:])
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// The first attempt may come before the receiver listens; the next one follows after a
	// second.
	send(t, 201, "PUT", server.URL+"/v1/stream/__ds/subscriptions/runs",
		`{"type":"webhook","pattern":"sessions/*","filter":"run-finished","webhook":{"url":"http://`+address+`"}}`)
	send(t, 201, "PUT", server.URL+"/v1/stream/sessions/demo", "")
	send(t, 204, "POST", server.URL+"/v1/stream/sessions/demo", `[{"type":"RUN_STARTED","invocation":"inv_1","data":{"threadId":"main","runId":"inv_1"}},
		{"type":"RUN_FINISHED","invocation":"inv_1","data":{"threadId":"main","runId":"inv_1"}}]`)
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "sessions/demo RUN_FINISHED inv_1\n" {
		t.Errorf("it prints %q, %v", line, err)
	}
	send(t, 401, "POST", "http://"+address, `{"streams":[]}`)
}

// freeAddress returns an address of the loopback with a port that nobody uses.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// send sends a request and compares the status.
func send(t *testing.T, want int, method, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != want {
		t.Fatalf("%s %s: %d %s, want %d", method, url, resp.StatusCode, answer, want)
	}
}
