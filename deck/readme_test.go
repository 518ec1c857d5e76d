package deck_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
)

// programs builds the Go programs of a page and returns their paths.
func programs(t *testing.T, page string) (built []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for i, p := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(text, -1) {
		if !strings.HasPrefix(string(p[1]), "package main\n") {
			t.Fatalf("%s has Go that is no program: %s", page, p[1])
		}
		dir := filepath.Join(root, strconv.Itoa(i))
		file, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, p[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", program, file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		built = append(built, program)
	}
	return built
}

// command returns the command that runs a program in its folder.
func command(t *testing.T, program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = filepath.Dir(program)
	return c
}

// TestReadmePrograms builds the Go programs of the README and runs the one that
// ends by itself.
func TestReadmePrograms(t *testing.T) {
	built := programs(t, "../README.md")
	if len(built) != 2 {
		t.Fatalf("the README has %d programs, want 2", len(built))
	}
	out, err := command(t, built[1]).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "You said: hello") || !strings.Contains(string(out), tapedeck.RunFinished) {
		t.Errorf("the last program: %v\n%s", err, out)
	}
}

// TestEmbedPrograms builds and runs the programs of docs/embed.md: a server, an agent,
// views and a client.
func TestEmbedPrograms(t *testing.T) {
	built := programs(t, "../docs/embed.md")
	if len(built) != 4 {
		t.Fatalf("the page has %d programs, want 4", len(built))
	}
	t.Run("server", func(t *testing.T) { testServerProgram(t, built[0]) })
	t.Run("agent", func(t *testing.T) {
		const want = `asked: Delete the folder build?
ended: RUN_FINISHED
said: I continue after 9 events.
asked: Delete the folder build?
said: The folder build is deleted.
ended: RUN_FINISHED
`
		if out, err := command(t, built[1]).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("views", func(t *testing.T) {
		const want = `as of offset 7
  user: Plan a trip to Bern
  user: By way of Thun
as of offset 8
  user: Plan a trip to Bern
runs in the log: 2
found: message By way of «Thun»
`
		if out, err := command(t, built[2]).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("client", func(t *testing.T) {
		d := openAt(t, "", deck.Options{InMemory: true, Agents: []deck.Agent{echoAgent}})
		asked := make(chan string, 100)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Header.Get("Authorization")
			d.Handler().ServeHTTP(w, r)
		}))
		defer server.Close()
		c := command(t, built[3], server.URL)
		c.Env = append(os.Environ(), "TOKEN=secret")
		out, err := c.CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "RUN_FINISHED\nuser: hello\nassistant: hello \n") || <-asked != "Bearer secret" {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// testServerProgram: the server checks access, streams, and ends soon after an interrupt,
// although a stream is open.
func testServerProgram(t *testing.T, program string) {
	p := command(t, program)
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	url, _ := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	resp, err := http.Get(url + "/api/v1/sessions")
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("without a token: %v, %v", resp, err)
	}
	resp.Body.Close()
	token := func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer secret"}}, nil
	}
	c, err := client.New(url, client.WithHeader(token))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	testOpenStream(t, c, func() {
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("the program ends with %v", err)
		}
	})
}

// testOpenStream calls stop while a stream is open. The stream must end then.
func testOpenStream(t *testing.T, c *client.Client, stop func()) {
	t.Helper()
	s, err := c.Create(t.Context(), api.NewSession{Title: "A stream"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open, ended := make(chan struct{}), make(chan struct{})
	o := client.FollowOptions{OnCaughtUp: func(int64) { close(open) }, OnReconnect: func(int, error) { cancel() }}
	go func() {
		defer close(ended)
		for range c.Follow(ctx, s.ID, o) {
		}
	}()
	<-open
	stop()
	<-ended
}
