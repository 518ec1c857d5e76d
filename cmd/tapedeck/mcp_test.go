package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/view"
)

// An mcpChild is the command mcp as an agent starts it.
type mcpChild struct {
	*sdk.ClientSession
	command *exec.Cmd
	updated chan string
}

func startMCP(t *testing.T, args ...string) *mcpChild {
	t.Helper()
	c := &mcpChild{updated: make(chan string, 100), command: exec.Command(testserver.Binary(t), append([]string{"mcp"}, args...)...)}
	c.command.Stderr = os.Stderr
	peer := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { c.updated <- r.Params.URI },
	})
	var err error
	c.ClientSession, err = peer.Connect(t.Context(), &sdk.CommandTransport{Command: c.command}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask calls a tool and decodes the data of its answer.
func (c *mcpChild) ask(t *testing.T, tool string, arguments map[string]any, out any) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil || r.IsError {
		t.Fatalf("%s: %v %+v", tool, err, r)
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestMCP: an agent works with the sessions of a folder, alone and beside a server, and
// learns what others append.
func TestMCP(t *testing.T) {
	for _, beside := range []bool{false, true} {
		data := t.TempDir()
		var server *testserver.Server
		if beside {
			server = testserver.Start(t, data)
		}
		c := startMCP(t, "--data", data, "--write")
		var started api.Started
		c.ask(t, "run_agent", map[string]any{"task": "say hello to everybody", "agent": "hello"}, &started)
		if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "tapedeck://sessions/" + started.Session}); err != nil {
			t.Fatal(err)
		}
		var sum view.Summary
		for sum.FinalStatus == "" { // each notification says that there is more to read
			c.ask(t, "session_summary", map[string]any{"session": started.Session}, &sum)
			if sum.FinalStatus == "" {
				<-c.updated
			}
		}
		var page struct{ Messages []view.Message }
		c.ask(t, "read_session", map[string]any{"session": started.Session, "limit": 1}, &page)
		if len(page.Messages) != 1 || page.Messages[0].Role != "assistant" {
			t.Errorf("beside a server %t: %+v", beside, page)
		}
		var events api.Events
		c.ask(t, "read_events", map[string]any{"session": started.Session, "view": "effective", "reverse": true, "limit": 1, "invocation": started.Invocation}, &events)
		if len(events.Events) != 1 || !strings.Contains(string(events.Events[0]), "RUN_FINISHED") {
			t.Errorf("%s", events.Events)
		}
		found := search.Result{}
		for len(found.Hits) == 0 { // until the index has it
			c.ask(t, "search_sessions", map[string]any{"query": "everybody"}, &found)
		}
		var fork struct{ ID string }
		c.ask(t, "fork_session", map[string]any{"session": started.Session}, &fork)
		var diff view.Diff
		c.ask(t, "diff_sessions", map[string]any{"a": started.Session, "b": fork.ID}, &diff)
		if !diff.Same {
			t.Errorf("%+v", diff)
		}
		if beside {
			c.follow(t, server, fork.ID)
		}
		if err := c.Close(); err != nil || c.command.ProcessState.ExitCode() != 0 {
			t.Errorf("beside a server %t: %v, exit code %d", beside, err, c.command.ProcessState.ExitCode())
		}
	}
}

// follow checks that the agent learns what another program appends.
func (c *mcpChild) follow(t *testing.T, server *testserver.Server, session string) {
	t.Helper()
	uri := "tapedeck://sessions/" + session
	if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	other, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	line := `{"type":"message.added","data":{"message":{"id":"m","role":"user","content":"news"}}}`
	if _, err := other.Append(t.Context(), session, strings.NewReader(line), client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	for got := ""; got != uri; {
		got = <-c.updated
	}
}

// TestMCPReleasesTheFolder: a server can be started while an agent runs the command, and the
// command then goes through it.
func TestMCPReleasesTheFolder(t *testing.T) {
	data := t.TempDir()
	c := startMCP(t, "--data", data, "--write")
	var started api.Started
	c.ask(t, "run_agent", map[string]any{"task": "hello", "agent": "hello"}, &started)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C { // nothing reports it
		lock, err := sqlite.TakeLock(data)
		if err == nil {
			lock.Release()
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	server := testserver.Start(t, data)
	var sum view.Summary
	c.ask(t, "session_summary", map[string]any{"session": started.Session}, &sum)
	if sum.FinalStatus != tapedeck.StatusComplete { // it was not released before the end of the run
		t.Errorf("%+v", sum)
	}
	server.Kill()
	c.ask(t, "session_summary", map[string]any{"session": started.Session}, &sum)
}

// TestMCPReadsOnly: without the flag there are no tools that change anything, and the flag for
// the own session needs it.
func TestMCPReadsOnly(t *testing.T) {
	c := startMCP(t, "--data", t.TempDir())
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%v %+v", err, tool)
		}
	}
	out, err := exec.Command(testserver.Binary(t), "mcp", "--own-session").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--own-session needs --write") {
		t.Errorf("%v %s", err, out)
	}
}

// TestMCPGarbage: input that is not MCP is an error that says so.
func TestMCPGarbage(t *testing.T) {
	cmd := exec.Command(testserver.Binary(t), "mcp", "--data", t.TempDir())
	cmd.Stdin = strings.NewReader("hello\n")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "tapedeck: the standard input is not from an MCP client: ") {
		t.Errorf("%v %s", err, out)
	}
}

// TestMCPSignal: a signal ends the command although nobody closes its input.
func TestMCPSignal(t *testing.T) {
	cmd := exec.Command(testserver.Binary(t), "mcp", "--data", t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it serves
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != exitCancelled {
		t.Errorf("exit code %d", code)
	}
}
