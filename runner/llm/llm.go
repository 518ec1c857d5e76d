// Package llm is a runner whose agent is a model with tools. A loop calls the model,
// executes the tool calls of its answer, and calls it again, until an answer has no
// tool calls.
//
// The runner has no state of its own. It builds the messages for the model from the
// active events of the session, so a rewind also changes what the model knows.
package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/procgroup"
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

// Options configure a runner. BaseURL and Model are required.
type Options struct {
	Name    string            // the provider's name in usage reports; "" for the host of BaseURL
	BaseURL string            // the URL of an OpenAI-compatible API, such as "http://localhost:11434/v1"
	Key     string            // the API key; "" for no key
	Header  map[string]string // additional headers of requests
	Model   string
	Models  []string // beside Model, those that a config may name; nil for any
	System  string   // the system prompt; "" for no prompt

	Parameters map[string]json.RawMessage // additional members of requests, such as temperature
	Prices     map[string]Price           // the prices, by name of the model
	HTTPClient *http.Client               // nil for a client that follows no redirects
	MaxTurns   int                        // limit of model calls in a run; 0 for 50
	Retries    int                        // retries of a model call after a temporary error; 0 for 4, below 0 for no retries

	Tools   []tool.Tool  // additional tools
	Servers []mcp.Server // servers with additional tools; each run connects to them again
	Files   tool.Options // options of the tools for the folder of the run
	Policy  Policy
}

// A Price is the price of a million tokens, in US dollars.
type Price struct {
	Input, Output float64
	CachedInput   *float64 // nil if it equals Input
	CacheWrite    *float64 // nil if it equals Input
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

// New returns a runner. It does not check o: [Runner.Available] and each run return the
// error of invalid options.
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

// Describe returns the kind of this runner and a description for people.
func (r *Runner) Describe() (kind, description string) {
	return "llm", "runs the model " + r.options.Model + " of " + r.options.Name
}

// Equipment implements [runner.Equipped]. It does not have the tools of MCP servers: the
// run reports them when it has connected to the servers.
func (r *Runner) Equipment(in tapedeck.Invocation) runner.Equipment {
	c, err := r.config(in.Config)
	if err != nil {
		return runner.Equipment{Model: r.options.Model} // the run returns the error
	}
	q := runner.Equipment{Model: c.Model}
	var tools []tool.Tool
	if in.Folder != "" {
		if f, err := tool.OpenFolder(in.Folder, r.options.Files); err == nil {
			tools = f.Tools()
			_ = f.Close() // it is only read
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
		Deltas: true, Thinking: true, Tools: true, Plan: true, Permission: true, Interrupt: true, Steer: true, Exact: true,
	}
}

// Available implements [runner.Capable]. It checks only the options, and sends no request
// to the provider.
func (r *Runner) Available() error {
	u, err := url.Parse(r.options.BaseURL)
	switch {
	case r.options.BaseURL == "":
		return tapedeck.Errorf(tapedeck.Unavailable, "the base URL of the model is not set").
			WithHint("set the base URL, such as https://api.openai.com/v1 or http://localhost:11434/v1")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return tapedeck.Errorf(tapedeck.Unavailable, "the base URL of the model is not an HTTP URL").
			WithHint("a base URL looks like https://api.openai.com/v1")
	case r.options.Model == "":
		return tapedeck.Errorf(tapedeck.Unavailable, "no model is configured").WithHint("set the name of a model of %s", r.options.Name)
	}
	if err := r.options.Policy.check(); err != nil {
		return err
	}
	return r.programs()
}

// programs returns an error if the program of an MCP server is not there, or the sandbox of
// commands or of an MCP server cannot be had here.
func (r *Runner) programs() error {
	if err := r.options.Files.Sandbox.Available("/bin/sh"); err != nil {
		return err
	}
	for _, s := range r.options.Servers {
		if len(s.Command) == 0 {
			continue
		}
		if err := s.Sandbox.Available(s.Command[0]); err != nil {
			return err
		}
		if !strings.ContainsRune(s.Command[0], filepath.Separator) || filepath.IsAbs(s.Command[0]) { // others begin in the folder of the run
			if err := procgroup.Installed(s.Name, s.Command, "", "it is the command of the MCP server "+s.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Config is the config of an invocation, which is JSON.
type Config struct {
	Model    string `json:"model,omitempty"`     // replaces [Options.Model]; "" to keep it
	System   string `json:"system,omitempty"`    // replaces [Options.System]; "" to keep it
	MaxTurns int    `json:"max_turns,omitempty"` // lowers [Options.MaxTurns]; 0 to keep it
}

func (r *Runner) config(raw json.RawMessage) (Config, error) {
	c := Config{}
	if err := runner.CheckMembers(raw, "model", "system", "max_turns"); err != nil {
		return c, err
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c); err != nil {
			return c, tapedeck.Errorf(tapedeck.Invalid, "the config is not valid: %w", err)
		}
	}
	if o := &r.options; c.Model != "" && c.Model != o.Model && len(o.Models) > 0 && !slices.Contains(o.Models, c.Model) {
		return c, tapedeck.Errorf(tapedeck.Invalid, "the agent does not offer the model %q", c.Model).WithHint("it offers: %s", strings.Join(o.Models, ", "))
	}
	if c.MaxTurns < 0 {
		return c, tapedeck.Errorf(tapedeck.Invalid, "max_turns is %d, but it must be above 0", c.MaxTurns)
	}
	c.Model, c.System = cmp.Or(c.Model, r.options.Model), cmp.Or(c.System, r.options.System)
	c.MaxTurns = min(cmp.Or(c.MaxTurns, r.options.MaxTurns), r.options.MaxTurns)
	return c, nil
}

// CheckConfig implements [runner.Configurable].
func (r *Runner) CheckConfig(config json.RawMessage) error {
	_, err := r.config(config)
	return err
}

// Instructions implements [runner.Instructed].
func (r *Runner) Instructions(raw json.RawMessage) (string, error) {
	c, err := r.config(raw)
	return c.System, err
}

// errLeft means that yield has returned false: no more events are wanted.
var errLeft = errors.New("the run has ended")

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
			cancel() // stops a running tool, which yields no events until it ends
			return errLeft
		})
		// An error after a cancel is not a failure of the run.
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
