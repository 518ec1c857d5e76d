// Package agui runs an agent that another server offers over AG-UI: an HTTP endpoint
// that takes a RunAgentInput and answers with a stream of events, in version 1.0 or
// earlier. Everything that the agent says is in the log before anybody else gets it.
// docs/agents/ag-ui.md describes it.
package agui

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"iter"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/secret"
	"github.com/tapedeck/tapedeck/runner"
)

// Options configure a runner. URL is required.
type Options struct {
	Name   string            // the agent's name; distinguishes its conversations from those of other agents
	URL    string            // to which each run is sent
	Header map[string]string // sent with each request, such as Authorization

	Retry    time.Duration     // the wait before the first repetition of a request that was not accepted, which doubles; 0 for a second
	Stop     time.Duration     // time limit for telling another Tapedeck to stop a run; 0 for five seconds
	MaxEvent int               // the largest event that is accepted, in bytes; 0 for 16 MiB
	HTTP     http.RoundTripper // nil for [http.DefaultTransport]
}

// A Runner runs an agent over AG-UI.
type Runner struct {
	options Options
	client  *http.Client
	secrets *secret.Words // of its requests
	legacy  atomic.Bool   // the agent has refused an input of version 1.0 and accepted an earlier one
}

var _ runner.Capable = (*Runner)(nil)

// New returns a runner.
func New(o Options) *Runner {
	o.Retry, o.Stop, o.MaxEvent = cmp.Or(o.Retry, time.Second), cmp.Or(o.Stop, 5*time.Second), cmp.Or(o.MaxEvent, 16<<20)
	if o.HTTP == nil {
		o.HTTP = http.DefaultTransport
	}
	return &Runner{options: o, secrets: secret.WordsOf(o.URL, o.Header, ""), client: &http.Client{ // without a time-out: a stream may take long
		Transport: o.HTTP,
		// The headers may have secrets, which another server must not get.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Capabilities implements [runner.Capable].
func (r *Runner) Capabilities() tapedeck.Capabilities {
	return tapedeck.Capabilities{Deltas: true, Thinking: true, Tools: true, Plan: true, Permission: true, Resume: true, Exact: true}
}

// Available implements [runner.Capable].
func (r *Runner) Available() error {
	if r.options.URL == "" {
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent has no URL").WithHint("set url in its configuration")
	}
	return nil
}

// CheckConfig implements [runner.Configurable]. The agent gets the config as it is.
func (r *Runner) CheckConfig(config json.RawMessage) error { return runner.CheckMembers(config) }

// link returns the runner name in the links that this runner stores in the log.
func (r *Runner) link() string { return "agui:" + r.options.Name }

// Run implements [tapedeck.Runner].
func (r *Runner) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		if ctx.Err() != nil {
			return
		}
		t := newTurn(r, &in, yield)
		err := t.run(ctx)
		t.abandon(ctx)
		if err != nil && ctx.Err() == nil && !t.over {
			yield(tapedeck.Event{}, r.secrets.HideIn(err))
		}
	}
}

// newThread returns an id for a new thread of the agent. It is a UUID, as front ends
// send it: some servers accept nothing else.
func newThread() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
