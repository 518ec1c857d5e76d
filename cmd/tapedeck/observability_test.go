package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/otlptest"
)

// TestCommandsOfObservability runs the commands of docs/observability.md in their order, with
// other addresses: a server that a command starts serves the commands after it.
func TestCommandsOfObservability(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	doc, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "tapedeck")); err != nil {
		t.Skip("needs symbolic links")
	}
	listen, figures := free(t), free(t)
	here := strings.NewReplacer("127.0.0.1:9464", figures, "http://127.0.0.1:4318", otlptest.Start(t).URL, "https://deck.example", "http://"+listen)
	shell := func(ctx context.Context, line string) *exec.Cmd {
		c := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
		if head, rest, ok := strings.Cut(line, " tapedeck "); ok && strings.Contains(head, "=") {
			c = exec.CommandContext(ctx, "sh", "-c", head+" exec tapedeck "+rest)
		}
		c.Dir, c.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TAPEDECK_DATA="+dir+"/data", "TOKEN=td_x", "NO_COLOR=1")
		return c
	}
	if out, err := shell(t.Context(), "tapedeck create notes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stop := serving(t, shell(context.Background(), "tapedeck serve --json --listen "+listen)) // the first commands are for a server that runs
	ran := 0
	for _, m := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(string(doc), -1) {
		line := here.Replace(m[1])
		ran++
		if strings.Contains(line, "tapedeck serve") {
			stop()
			stop = serving(t, shell(context.Background(), line+" --json --listen "+listen))
			continue
		}
		out, err := shell(t.Context(), strings.Replace(line, "curl ", "curl -sSf ", 1)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		if strings.HasSuffix(line, "/metrics") && !strings.Contains(string(out), "tapedeck_build_info") {
			t.Errorf("%s: %s", line, out)
		}
	}
	stop()
	if ran < 6 {
		t.Errorf("the page has %d commands", ran)
	}
}

// free returns an address on which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serving starts a server and waits until it says its address. Call stop at the end.
func serving(t *testing.T, c *exec.Cmd) (stop func()) {
	t.Helper()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	if n, err := out.Read(line); err != nil || !strings.Contains(string(line[:n]), `"url"`) {
		t.Errorf("%s: %q, %v", c, line[:n], err)
	}
	return func() {
		if err := c.Process.Signal(os.Interrupt); err == nil {
			_ = c.Wait() // it was interrupted
		}
	}
}
