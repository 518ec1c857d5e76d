// Package mcp connects to servers of the Model Context Protocol and offers their tools.
// The official SDK implements the protocol.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/mcpname"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
	"github.com/tapedeck/tapedeck/internal/schema"
	"github.com/tapedeck/tapedeck/internal/secret"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// A Server is the configuration of an MCP server. It has a command or a URL.
type Server struct {
	Name    string            // prefix of the names of its tools: NAME__TOOL
	Command []string          // a program that speaks MCP on its standard input and output, and its arguments
	Env     []string          // variables of the program, see [tool.Environment]
	URL     string            // the URL of a streamable HTTP endpoint
	Headers map[string]string // headers of each request, such as Authorization

	Sandbox *sandbox.Policy // confines the program; nil for no sandbox
}

// maxTools is the limit of tools of one server. Further tools are ignored.
const maxTools = 256

// Time limits of a server, to connect and to end.
const (
	connecting = 30 * time.Second
	ending     = time.Second
)

// A Connection is an open connection to a server. Call [Connection.Close] in the end.
type Connection struct {
	server  Server
	secrets *secret.Words // of its requests
	run     Run
	session *sdk.ClientSession
	ours    bool               // the server says that it is Tapedeck
	process *procgroup.Process // nil for a URL
	tools   []tool.Tool
}

// A Run is the run whose agent uses the tools.
type Run struct {
	Session string // a Tapedeck server learns it, so that an agent does not change its own session
	Folder  string // a program works there

	// Started is called with the process of a program before it begins; see [tool.Call]. It
	// may be nil.
	Started func(payload.AgentStarted) error
}

// Connect connects to a server.
func Connect(ctx context.Context, s Server, r Run) (*Connection, error) {
	c := &Connection{server: s, secrets: secret.WordsOf(s.URL, s.Headers, ""), run: r}
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	transport, err := c.transport()
	if err == nil {
		err = c.open(ctx, transport)
	}
	if err == nil {
		return c, nil
	}
	stderr := c.stderr()
	e := tapedeck.Errorf(tapedeck.Unavailable, "cannot connect to the MCP server %s: %s", s.Name, c.reason(err)).Because(c.secrets.HideIn(err))
	c.Close()
	if stderr != "" {
		e = e.WithHint("its error output ends with: %s", stderr)
	}
	return nil, e
}

// reason returns why the server cannot be used, without the secrets of its requests.
func (c *Connection) reason(err error) string {
	var e *tapedeck.Error
	switch {
	case errors.As(err, &e):
		return e.Message
	case strings.Contains(err.Error(), "exceeded maximum nesting depth"): // the SDK has no value for it
		return "it sends something that is nested more than 1,000 deep, such as the schema of a tool"
	case errors.Is(err, sdk.ErrConnectionClosed) && c.process != nil && c.process.Exit() != "":
		return "its program has ended: " + c.process.Exit()
	}
	return narrate.Unreached(err, c.secrets)
}

func (c *Connection) transport() (sdk.Transport, error) {
	if c.server.URL != "" {
		u, err := url.Parse(c.server.URL)
		if err != nil || u.Host == "" {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "its url is none").Because(err)
		}
		return &sdk.StreamableClientTransport{
			Endpoint: u.Scheme + "://" + u.Host, HTTPClient: client(u, c.server.Headers, c.secrets), DisableStandaloneSSE: true, MaxRetries: 1,
		}, nil
	}
	if len(c.server.Command) == 0 {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "it has neither a command nor a URL")
	}
	spec, err := c.server.Sandbox.Confine(procgroup.Spec{
		Path: c.server.Command[0], Args: c.server.Command[1:], Dir: c.run.Folder, Env: tool.Environment(c.server.Env), Stdin: true,
	})
	if err != nil {
		return nil, err
	}
	p, err := procgroup.Start(spec)
	if err != nil {
		return nil, procgroup.Failed(c.server.Command[0], err)
	}
	c.process = p
	if err := p.Begin(c.run.Started); err != nil {
		return nil, procgroup.Failed(c.server.Command[0], err)
	}
	return &sdk.IOTransport{Reader: pipe{p}, Writer: p.Stdin}, nil
}

// A pipe reads the output of a program. Close does nothing, because stopping the program
// closes the pipe.
type pipe struct{ p *procgroup.Process }

func (p pipe) Read(b []byte) (int, error) { return p.p.Stdout.Read(b) }

func (pipe) Close() error { return nil }

func (c *Connection) open(ctx context.Context, t sdk.Transport) error {
	client := sdk.NewClient(&sdk.Implementation{Name: "tapedeck", Version: "1"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	session, err := client.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	c.session = session
	caps := session.InitializeResult()
	if caps == nil || caps.Capabilities == nil || caps.Capabilities.Tools == nil {
		return nil // the server has no tools
	}
	c.ours = caps.ServerInfo != nil && caps.ServerInfo.Name == mcpname.Server
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if len(c.tools) == maxTools {
			break
		}
		c.tools = append(c.tools, c.wrap(t))
	}
	return nil
}

// Tools returns the tools of the server.
func (c *Connection) Tools() []tool.Tool { return c.tools }

// Close ends the connection, and the program if the server is one.
func (c *Connection) Close() {
	if c.process != nil { // first, so that closing the session does not wait for its answer
		c.process.Stop(procgroup.Ladder{EOF: ending, Term: ending})
	}
	if c.session != nil {
		_ = c.session.Close() // the connection has ended, also after an error
	}
}

func (c *Connection) stderr() string {
	if c.process == nil {
		return ""
	}
	c.process.Stop(procgroup.Ladder{EOF: ending, Term: ending})
	lines := strings.Split(strings.TrimSpace(c.process.Stderr()), "\n")
	return lines[len(lines)-1]
}

// wrap returns a tool of the server as a [tool.Tool]. The tool is never read-only: a server
// can mark its tools as read-only, but the mark cannot be trusted.
func (c *Connection) wrap(t *sdk.Tool) tool.Tool {
	text, err := json.Marshal(t.InputSchema)
	if err != nil || !strings.HasPrefix(string(text), "{") {
		text = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	name := t.Name
	return tool.Tool{
		Name: c.server.Name + "__" + name, Description: t.Description, Parameters: text, Check: checker(text),
		Run: func(ctx context.Context, call tool.Call) tool.Result {
			r, err := c.session.CallTool(ctx, &sdk.CallToolParams{Meta: c.meta(), Name: name, Arguments: call.Arguments})
			if err != nil {
				return tool.Failed("The MCP server %s failed: %s.", c.server.Name, c.reason(err))
			}
			return result(r)
		},
	}
}

// These bound what the schema of a server can cost, which may be hostile.
const (
	maxSchema = 128 << 10 // bytes
	maxSteps  = 100_000
)

// checker returns a [tool.Tool] check for the schema of a server. The schema is read at the
// first call. One that cannot be used, or costs too much, checks nothing: the server does.
func checker(text []byte) func(json.RawMessage) string {
	read := sync.OnceValue(func() *schema.Schema {
		if len(text) > maxSchema {
			return nil
		}
		s, _, _ := schema.Read(string(text)) // nil after an error
		return s
	})
	return func(arguments json.RawMessage) string {
		s := read()
		var given map[string]any
		if s == nil || json.Unmarshal(arguments, &given) != nil {
			return ""
		}
		maps.DeleteFunc(given, func(name string, v any) bool { return v == nil && !s.Requires(name) }) // models write null for what they leave out
		if err := s.Validate(given, maxSteps); err != nil && !errors.Is(err, schema.ErrSteps) {
			return tool.Misfit(err)
		}
		return ""
	}
}

// meta returns what a call tells the server besides the arguments. Servers of others do not
// learn ids of ours.
func (c *Connection) meta() sdk.Meta {
	if !c.ours || c.run.Session == "" {
		return nil
	}
	return sdk.Meta{mcpname.Session: c.run.Session}
}

// result returns the answer of a server as text.
func result(r *sdk.CallToolResult) tool.Result {
	var parts []string
	for _, content := range r.Content {
		switch v := content.(type) {
		case *sdk.TextContent:
			parts = append(parts, v.Text)
		case *sdk.ImageContent:
			parts = append(parts, "[image "+v.MIMEType+"]")
		case *sdk.AudioContent:
			parts = append(parts, "[audio "+v.MIMEType+"]")
		case *sdk.ResourceLink:
			parts = append(parts, "["+v.URI+"]")
		case *sdk.EmbeddedResource:
			if v.Resource != nil {
				parts = append(parts, "["+v.Resource.URI+"]", v.Resource.Text)
			}
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if b, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(b))
		}
	}
	return tool.Result{Text: strings.Join(parts, "\n"), Failed: r.IsError}
}

// client returns a client of the server at u. It follows no redirects, so that no other
// server gets the headers.
func client(u *url.URL, headers map[string]string, secrets *secret.Words) *http.Client {
	return &http.Client{
		Transport:     sender{u, headers, secrets},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A sender sends requests to the whole URL of a server, with its headers. The SDK knows only
// the host, because the rest may be secret and its errors have the URL.
type sender struct {
	url     *url.URL
	headers map[string]string
	secrets *secret.Words
}

// RoundTrip implements [http.RoundTripper]. The request that ends a session has a short
// time limit, because the run is over and does not need the answer.
func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if r.Method == http.MethodDelete {
		short, cancel := context.WithTimeout(ctx, ending)
		context.AfterFunc(short, cancel) // the answer has no body, so nothing is read later
		ctx = short
	}
	r = r.Clone(ctx)
	r.URL = s.url
	if user := s.url.User; user != nil {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	for name, value := range s.headers {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil { // now, because the SDK keeps only the text
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "%s", narrate.Unreached(err, s.secrets)).Because(err)
	}
	return resp, nil
}
