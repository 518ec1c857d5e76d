package mcp_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/script"
)

// A world is a deck with its endpoint on a real connection.
type world struct {
	*deck.Deck
	server *httptest.Server
}

func newWorld(t *testing.T, o deck.Options) *world {
	t.Helper()
	o.InMemory = true
	o.Agents = []deck.Agent{
		{Name: "hello", Description: "says hello", Runner: script.New(script.Options{Instant: true})},
		{Name: "slow", Runner: script.New(script.Options{Script: "slow"})},
	}
	d, err := deck.Open(t.Context(), "", o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{d, httptest.NewServer(d.Handler())}
	t.Cleanup(func() {
		_ = d.Close(context.Background())
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

// Versions of the protocol: with the old one a client initializes, and has a stream of its
// own; with the new one each request stands for itself.
const (
	stateful  = "2025-11-25"
	stateless = "2026-07-28"
)

// A peer is a client, and what it was told.
type peer struct {
	*sdk.ClientSession
	t       *testing.T
	tools   map[string]*sdk.Tool
	updated chan string // gets the URI of each notification
}

func (w *world) connect(t *testing.T, version string) *peer {
	t.Helper()
	p := &peer{t: t, tools: map[string]*sdk.Tool{}, updated: make(chan string, 100)}
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { p.updated <- r.Params.URI },
	})
	var err error
	p.ClientSession, err = c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: w.server.URL + "/mcp"}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if got := p.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("version %s, want %s", got, version)
	}
	for tool, err := range p.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		p.tools[tool.Name] = tool
	}
	return p
}

// both runs a test with each version of the protocol.
func both(t *testing.T, test func(t *testing.T, version string)) {
	for _, v := range []string{stateful, stateless} {
		t.Run(v, func(t *testing.T) { test(t, v) })
	}
}

// maxAnswer is the largest number of bytes that an answer of a tool may have, text and
// data together.
const maxAnswer = 256 << 10

// ask calls a tool. It checks the size of the answer and its schema.
func (p *peer) ask(tool string, arguments map[string]any) *sdk.CallToolResult {
	p.t.Helper()
	r, err := p.CallTool(p.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		p.t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	data, err := json.Marshal(r)
	if err != nil || len(data) > maxAnswer {
		p.t.Errorf("%s %v: the answer has %d bytes, %v", tool, arguments, len(data), err)
	}
	if !r.IsError {
		if err := p.schema(tool).Validate(r.StructuredContent); err != nil {
			p.t.Errorf("%s %v: the answer does not have its schema: %.600v", tool, arguments, err)
		}
	}
	return r
}

var resolved sync.Map // schemas of answers by tool

func (p *peer) schema(tool string) *jsonschema.Resolved {
	p.t.Helper()
	if s, ok := resolved.Load(tool); ok {
		return s.(*jsonschema.Resolved)
	}
	var s jsonschema.Schema
	raw, err := json.Marshal(p.tools[tool].OutputSchema)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		p.t.Fatalf("%s: %v", tool, err)
	}
	resolved.Store(tool, r)
	return r
}

// get calls a tool, which must succeed, and decodes the data of the answer.
func get[T any](p *peer, tool string, arguments map[string]any) (T, string) {
	p.t.Helper()
	var out T
	r := p.ask(tool, arguments)
	if r.IsError {
		p.t.Fatalf("%s %v: %s", tool, arguments, text(r))
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", tool, err)
	}
	return out, text(r)
}

// fail calls a tool, which must fail, and returns the text of the error.
func (p *peer) fail(tool string, arguments map[string]any) string {
	p.t.Helper()
	r := p.ask(tool, arguments)
	if !r.IsError {
		p.t.Errorf("%s %v succeeded: %s", tool, arguments, text(r))
	}
	return text(r)
}

func text(r *sdk.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.(*sdk.TextContent).Text)
	}
	return b.String()
}

func (w *world) create(t *testing.T, id string, texts ...string) *deck.Session {
	t.Helper()
	s, err := w.Create(t.Context(), api.NewSession{ID: id, Title: "A title"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		w.say(t, s, text)
	}
	return s
}

func (w *world) say(t *testing.T, s *deck.Session, text string) {
	t.Helper()
	e := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(tapedeck.NewID("m_"), payload.RoleUser, text)})
	if _, err := s.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// run runs an agent to its end.
func (w *world) run(t *testing.T, task api.Task) api.Started {
	t.Helper()
	started, err := w.Run(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	w.await(t, started)
	return started
}

func (w *world) await(t *testing.T, started api.Started) {
	t.Helper()
	for e, err := range w.Follow(t.Context(), started.Session, started.Offset) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Invocation == started.Invocation && (e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError) {
			return
		}
	}
}

// record appends events of the invocation i.
func (w *world) record(t *testing.T, s *deck.Session, payloads ...payload.Payload) {
	t.Helper()
	for _, d := range payloads {
		e := payload.NewEvent(d)
		e.Invocation = "i"
		if _, err := s.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// call is a run in which a tool is called.
func call(name, arguments, result string) []payload.Payload {
	return []payload.Payload{
		payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: "i"},
		payload.ToolCallStart{ToolCallID: "c", ToolCallName: name}, payload.ToolCallArgs{ToolCallID: "c", Delta: payload.Piece(arguments)},
		payload.ToolCallEnd{ToolCallID: "c"}, payload.ToolCallResult{MessageID: "r", ToolCallID: "c", Content: json.RawMessage(`"` + result + `"`)},
	}
}
