package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/mcp"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// TestMain lets the test binary play the server if a variable says so.
func TestMain(m *testing.M) {
	switch arg := os.Args[len(os.Args)-1]; arg {
	case "serve-mcp":
		if err := server().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	case "serve-deep":
		serveDeep()
	case "die":
		os.Stderr.WriteString("no licence\nI cannot start\n")
		os.Exit(3)
	default:
		os.Exit(m.Run())
	}
}

func server() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "says it again"}, func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
		if a.Text == "fail" {
			return nil, nil, errors.New("it failed")
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "you said " + a.Text}, &sdk.ImageContent{MIMEType: "image/png"}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond): // over HTTP the server does not get the cancel
		}
		return nil, nil, errors.New("it was not waited for")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "exit"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		os.Exit(1)
		return nil, nil, nil
	})
	return s
}

// serveDeep is a server with one tool. Objects in its schema are nested very deep.
func serveDeep() {
	schema := strings.Repeat(`{"properties":{"a":`, 600) + "{}" + strings.Repeat("}}", 600)
	for in := json.NewDecoder(os.Stdin); ; {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if in.Decode(&m) != nil {
			return
		}
		switch {
		case m.Method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"deep","version":"1"}}}`+"\n", m.ID)
		case m.Method == "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"deep","inputSchema":%s}]}}`+"\n", m.ID, schema)
		case m.ID != nil:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		}
	}
}

// TestDeep: a schema that is nested too deep is named as the reason, and stops nothing else.
func TestDeep(t *testing.T) {
	const want = "cannot connect to the MCP server test: it sends something that is nested more than 1,000 deep, such as the schema of a tool"
	if _, err := mcp.Connect(t.Context(), stdio(t, "serve-deep"), mcp.Run{Folder: t.TempDir()}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestUnreached: the reason is said, and of the URL only the host.
func TestUnreached(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	c := mcp.Server{Name: "test", URL: strings.Replace(s.URL, "//", "//ada:pa55word@", 1) + "/s3cret/mcp?key=t0psecret"}
	_, err := mcp.Connect(t.Context(), c, mcp.Run{})
	if err == nil || !strings.HasSuffix(err.Error(), "the connection is refused, so nothing listens at its port") {
		t.Errorf("%v", err)
	}
	for _, secret := range []string{"pa55word", "s3cret", "t0psecret"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("it has %s: %v", secret, err)
		}
	}
}

// TestLost: a server that disconnects in the middle of an answer is no reason to show its URL.
func TestLost(t *testing.T) {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server() }, nil)
	lost := make(chan struct{}) // closed when the server takes no more requests
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a part of it is no call either
		select {
		case <-lost:
			panic(http.ErrAbortHandler)
		default:
		}
		if strings.Contains(string(body), `"tools/call"`) {
			close(lost)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 1\nretry: 1\ndata:\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	defer s.Close()
	c, err := mcp.Connect(t.Context(), mcp.Server{Name: "test", URL: s.URL + "/s3cret/mcp?key=t0psecret"}, mcp.Run{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := find(t, c, "test__echo").Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{"text":"hi"}`)})
	if !got.Failed || strings.Contains(got.Text, "s3cret") || strings.Contains(got.Text, "t0psecret") {
		t.Errorf("%+v", got)
	}
}

// TestWholeURL: a server gets the path, the query and the user of its URL.
func TestWholeURL(t *testing.T) {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server() }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); r.URL.RequestURI() != "/s3cret/mcp?key=t0psecret" || user != "ada" || password != "pa55word" {
			t.Errorf("%s %s %s", r.URL, user, password)
		}
		handler.ServeHTTP(w, r)
	}))
	defer s.Close()
	testServer(t, mcp.Server{Name: "test", URL: strings.Replace(s.URL, "//", "//ada:pa55word@", 1) + "/s3cret/mcp?key=t0psecret"})
}

func stdio(t *testing.T, arg string) mcp.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Server{Name: "test", Command: []string{self, arg}}
}

func find(t *testing.T, c *mcp.Connection, name string) tool.Tool {
	t.Helper()
	for _, u := range c.Tools() {
		if u.Name == name {
			return u
		}
	}
	t.Fatalf("there is no tool %s", name)
	return tool.Tool{}
}

func testServer(t *testing.T, s mcp.Server) {
	c, err := mcp.Connect(t.Context(), s, mcp.Run{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echo := find(t, c, "test__echo")
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(echo.Parameters, &schema); err != nil || schema.Properties["text"] == nil || echo.ReadOnly || echo.Description != "says it again" {
		t.Errorf("%+v %s", echo, echo.Parameters)
	}
	for _, tt := range []struct {
		arguments string
		want      tool.Result
	}{
		{`{"text":"hi"}`, tool.Result{Text: "you said hi\n[image image/png]"}},
		{`{"text":"fail"}`, tool.Result{Text: "it failed", Failed: true}},
	} {
		got := echo.Run(t.Context(), tool.Call{Arguments: json.RawMessage(tt.arguments)})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Error(diff)
		}
	}
	if got := echo.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`)}); !got.Failed {
		t.Errorf("arguments that do not fit: %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := find(t, c, "test__wait").Run(ctx, tool.Call{Arguments: json.RawMessage(`{}`)}); !got.Failed {
		t.Errorf("cancelled: %+v", got)
	}
}

func TestStdio(t *testing.T) { testServer(t, stdio(t, "serve-mcp")) }

func TestHTTP(t *testing.T) {
	var authorized, ended atomic.Int32
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server() }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer x" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		authorized.Add(1)
		if r.Method == http.MethodDelete {
			ended.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	defer s.Close()
	testServer(t, mcp.Server{Name: "test", URL: s.URL, Headers: map[string]string{"Authorization": "Bearer x"}})
	if authorized.Load() < 3 || ended.Load() != 1 {
		t.Errorf("%d requests, %d ends", authorized.Load(), ended.Load())
	}
	if _, err := mcp.Connect(t.Context(), mcp.Server{Name: "test", URL: s.URL}, mcp.Run{}); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("without a key: %v", err)
	}
}

// TestRedirect checks that the target of a redirect does not get the key.
func TestRedirect(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	_, err := mcp.Connect(t.Context(), mcp.Server{Name: "test", URL: s.URL, Headers: map[string]string{"Authorization": "x"}}, mcp.Run{})
	if err == nil || asked.Load() != 0 {
		t.Errorf("%v; it was asked %d times", err, asked.Load())
	}
}

func TestProcess(t *testing.T) {
	pid := 0
	c, err := mcp.Connect(t.Context(), stdio(t, "serve-mcp"), mcp.Run{
		Folder: t.TempDir(), Started: func(d payload.AgentStarted) error { pid = d.PID; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	exit := find(t, c, "test__exit")
	if r := exit.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`)}); !r.Failed || !strings.HasPrefix(r.Text, "The MCP server test failed: ") {
		t.Errorf("a server that has ended: %+v", r)
	}
	c.Close()
	if started, _ := procgroup.Identity(pid); started != "" || pid == 0 {
		t.Errorf("process %d is still alive", pid)
	}
	var e *tapedeck.Error
	_, err = mcp.Connect(t.Context(), stdio(t, "die"), mcp.Run{Folder: t.TempDir()})
	if !errors.As(err, &e) || e.Message != "cannot connect to the MCP server test: its program has ended: exit status 3" || e.Hint != "its error output ends with: I cannot start" {
		t.Errorf("%v %+v", err, e)
	}
	for _, s := range []mcp.Server{{Name: "test"}, {Name: "test", Command: []string{"/does/not/exist"}}} {
		if _, err := mcp.Connect(t.Context(), s, mcp.Run{Folder: t.TempDir()}); tapedeck.KindOf(err) != tapedeck.Unavailable {
			t.Errorf("%v", err)
		}
	}
}

// TestGroup checks that processes which a server started end with it.
func TestGroup(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no shell")
	}
	s := stdio(t, "serve-mcp")
	s.Command = []string{"/bin/sh", "-c", `sleep 1000 & echo $! > child; exec "$0" serve-mcp`, s.Command[0]}
	folder := t.TempDir()
	c, err := mcp.Connect(t.Context(), s, mcp.Run{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	find(t, c, "test__echo")
	text, err := os.ReadFile(folder + "/child")
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if started, _ := procgroup.Identity(child); started != "" {
		t.Errorf("process %d is still alive", child)
	}
}

// TestSessionIsForTapedeck checks that only a Tapedeck server learns in which session the
// agent runs.
func TestSessionIsForTapedeck(t *testing.T) {
	for name, want := range map[string]any{"tapedeck": "ses_1", "another": nil} {
		var got any
		server := sdk.NewServer(&sdk.Implementation{Name: name}, nil)
		sdk.AddTool(server, &sdk.Tool{Name: "look"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			got = r.Params.Meta["dev.tapedeck/session"]
			return nil, nil, nil
		})
		s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
		defer s.Close()
		c, err := mcp.Connect(t.Context(), mcp.Server{Name: "x", URL: s.URL}, mcp.Run{Session: "ses_1"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if r := find(t, c, "x__look").Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`)}); r.Failed || got != want {
			t.Errorf("%s learned %v: %+v", name, got, r)
		}
	}
}

// TestConfinedProcess: a server that is a program runs in its sandbox.
func TestConfinedProcess(t *testing.T) {
	s := stdio(t, "serve-mcp")
	s.Sandbox = &sandbox.Policy{}
	if err := s.Sandbox.Available("/bin/sh"); err != nil {
		t.Skipf("THE SANDBOX IS NOT TESTED HERE: %v", err)
	}
	if _, err := mcp.Connect(t.Context(), s, mcp.Run{Folder: t.TempDir()}); err == nil || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "not visible in the sandbox") {
		t.Errorf("a program that the sandbox hides: %v", err)
	}
	s.Sandbox.Readable = []string{filepath.Dir(s.Command[0])}
	c, err := mcp.Connect(t.Context(), s, mcp.Run{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	find(t, c, "test__exit")
}
