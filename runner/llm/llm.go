// Package llm is a runner whose agent is a model with tools: a loop that calls
// the model, carries out the tools that it asks for, and calls it again, until it
// asks for none.
//
// It keeps nothing: what the model is told is made of the events of the session,
// and what was rewound was never said.
package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/runner/llm/chat"
	"github.com/tapedeck/tapedeck/runner/llm/mcp"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// Defaults of [Options].
const (
	defaultMaxTurns = 50
	defaultRetries  = 4
)

// Options configure a runner. BaseURL and Model are needed.
type Options struct {
	Name    string            // of the provider, for usage reports; "" for the host of BaseURL
	BaseURL string            // of an OpenAI-compatible interface, such as "http://localhost:11434/v1"
	Key     string            // "" for none
	Header  map[string]string // more headers of requests
	Model   string
	System  string // the system prompt; "" for none

	Parameters map[string]json.RawMessage // more members of requests, such as temperature
	Prices     map[string]Price           // by name of model
	HTTPClient *http.Client               // nil for one that follows no redirects
	MaxTurns   int                        // model calls of a run; 0 for 50
	Retries    int                        // of a call before the model has said anything; 0 for 4, below 0 for none

	Tools   []tool.Tool  // more tools
	Servers []mcp.Server // whose tools are more tools; each run connects to them anew
	Files   tool.Options // of the tools for the folder of the run
	Policy  Policy
}

// A Price is what a million tokens cost, in US dollars.
type Price struct {
	Input, Output float64
	CachedInput   *float64 // nil for Input
	CacheWrite    *float64 // nil for Input
}

// A Runner runs models.
type Runner struct {
	options Options
	client  chat.Client
}

var (
	_ runner.Capable    = (*Runner)(nil)
	_ runner.Instructed = (*Runner)(nil)
)

// New returns a runner. What is wrong with o is told by [Runner.Available], and
// by the run that would use it.
func New(o Options) *Runner {
	if o.MaxTurns <= 0 {
		o.MaxTurns = defaultMaxTurns
	}
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	if u, err := url.Parse(o.BaseURL); err == nil {
		o.Name = cmp.Or(o.Name, u.Host)
	}
	return &Runner{o, chat.Client{BaseURL: o.BaseURL, Key: o.Key, Header: o.Header, HTTP: o.HTTPClient, Retries: o.Retries}}
}

// Describe returns the kind of this runner and what it does.
func (r *Runner) Describe() (kind, description string) {
	return "llm", "runs the model " + r.options.Model + " of " + r.options.Name
}

// Equipment implements [runner.Equipped]. Tools of MCP servers are not known
// before the run has connected to them.
func (r *Runner) Equipment(in tapedeck.Invocation) runner.Equipment {
	c, err := r.config(in.Config)
	if err != nil {
		return runner.Equipment{Model: r.options.Model} // the run says what is wrong
	}
	q := runner.Equipment{Model: c.Model}
	var tools []tool.Tool
	if in.Folder != "" {
		if f, err := tool.OpenFolder(in.Folder, r.options.Files); err == nil {
			tools = f.Tools()
			_ = f.Close() // nothing was written to it
		}
	}
	for _, t := range append(append(tools, tool.Todo()), r.options.Tools...) {
		if r.options.Policy.decide(&t) != Deny {
			q.Tools = append(q.Tools, functionName(t.Name))
		}
	}
	return q
}

// Capabilities implements [runner.Capable].
func (r *Runner) Capabilities() tapedeck.Capabilities {
	return tapedeck.Capabilities{
		Deltas: true, Thinking: true, Tools: true, Plan: true, Permission: true, Interrupt: true, Exact: true,
	}
}

// Available implements [runner.Capable]. It does not ask the provider.
func (r *Runner) Available() error {
	u, err := url.Parse(r.options.BaseURL)
	switch {
	case r.options.BaseURL == "":
		return tapedeck.Errorf(tapedeck.Unavailable, "the model has no address").
			WithHint("set the base URL, such as https://api.openai.com/v1 or http://localhost:11434/v1")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return tapedeck.Errorf(tapedeck.Unavailable, "the base URL of the model is not an address of HTTP").
			WithHint("it looks like https://api.openai.com/v1")
	case r.options.Model == "":
		return tapedeck.Errorf(tapedeck.Unavailable, "no model is named").WithHint("name one that %s has", r.options.Name)
	}
	return r.options.Policy.check()
}

// Config is what an invocation may ask for, in JSON.
type Config struct {
	Model    string `json:"model,omitempty"`     // instead of [Options.Model]
	System   string `json:"system,omitempty"`    // instead of [Options.System]
	MaxTurns int    `json:"max_turns,omitempty"` // if it is fewer than [Options.MaxTurns]
}

func (r *Runner) config(raw json.RawMessage) (Config, error) {
	c := Config{}
	if len(raw) > 0 {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return c, tapedeck.Errorf(tapedeck.Invalid, "the config cannot be read: %w", err).
				WithHint(`it may have "model", "system" and "max_turns"`)
		}
	}
	if c.MaxTurns < 0 {
		return c, tapedeck.Errorf(tapedeck.Invalid, "max_turns is %d; it must be above 0", c.MaxTurns)
	}
	c.Model, c.System = cmp.Or(c.Model, r.options.Model), cmp.Or(c.System, r.options.System)
	c.MaxTurns = min(cmp.Or(c.MaxTurns, r.options.MaxTurns), r.options.MaxTurns)
	return c, nil
}

// Instructions implements [runner.Instructed].
func (r *Runner) Instructions(raw json.RawMessage) (string, error) {
	c, err := r.config(raw)
	return c.System, err
}

// errLeft says that nobody listens to the run any more.
var errLeft = errors.New("nobody listens any more")

// Run implements [tapedeck.Runner].
func (r *Runner) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		within, cancel := context.WithCancel(ctx)
		defer cancel()
		left := false
		err := r.run(within, &in, func(e tapedeck.Event) error {
			if !left && yield(e, nil) {
				return nil
			}
			left = true
			cancel() // a tool may be at work that tells only that it has begun
			return errLeft
		})
		// A cancel is no failure, whatever it made fail.
		if err != nil && !left && ctx.Err() == nil {
			yield(tapedeck.Event{}, err)
		}
	}
}

func (r *Runner) run(ctx context.Context, in *tapedeck.Invocation, yield func(tapedeck.Event) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.Available(); err != nil {
		return err
	}
	config, err := r.config(in.Config)
	if err != nil {
		return err
	}
	s := &run{runner: r, config: config, ctx: ctx, in: in, yield: yield, memory: newMemory(in)}
	if err := s.memory.recall(ctx, config.System); err != nil {
		return err
	}
	defer s.toolbox.close()
	if err := s.equip(); err != nil {
		return err
	}
	return s.loop()
}
