// Package a2a runs an agent that another server offers over A2A, in version 1.0 or 0.3
// of the protocol. Everything that the agent says is in the log before anybody else
// gets it. docs/agents/a2a.md describes it.
package a2a

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/secret"
	"github.com/tapedeck/tapedeck/runner"
)

// Options configure a runner. URL is required.
type Options struct {
	Name   string            // the agent's name; distinguishes its conversations from those of other agents
	URL    string            // of the agent; its card is at .well-known/agent-card.json below it
	Header map[string]string // sent with each request, such as Authorization

	Start time.Duration     // time limit for the card and for the first answer; 0 for a minute
	Retry time.Duration     // the wait before the first attempt to reconnect, which doubles; 0 for a second
	Stop  time.Duration     // time limit for telling the agent to stop; 0 for five seconds
	HTTP  http.RoundTripper // nil for [http.DefaultTransport]
}

// maxAttempts is how often a runner tries to reconnect without hearing anything new.
const maxAttempts = 6

// A Runner runs an agent over A2A.
type Runner struct {
	options Options
	secrets *secret.Words // of its requests
}

var _ runner.Reattaching = (*Runner)(nil)

// New returns a runner.
func New(o Options) *Runner {
	o.Start, o.Retry, o.Stop = cmp.Or(o.Start, time.Minute), cmp.Or(o.Retry, time.Second), cmp.Or(o.Stop, 5*time.Second)
	if o.HTTP == nil {
		o.HTTP = http.DefaultTransport
	}
	return &Runner{o, secret.WordsOf(o.URL, o.Header, "")}
}

// Capabilities implements [runner.Capable].
func (r *Runner) Capabilities() tapedeck.Capabilities {
	return tapedeck.Capabilities{Deltas: true, Tools: true, Resume: true}
}

// CheckConfig implements [runner.Configurable].
func (r *Runner) CheckConfig(config json.RawMessage) error { return runner.NoConfig(config) }

// Available implements [runner.Capable].
func (r *Runner) Available() error {
	if r.options.URL == "" {
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent has no URL").WithHint("set url in its configuration")
	}
	return nil
}

// Reattaches implements [runner.Reattaching]: the agent does not end with this server.
func (r *Runner) Reattaches() {}

// link returns the runner name in the links that this runner stores in the log.
func (r *Runner) link() string { return "a2a:" + r.options.Name }

// Run implements [tapedeck.Runner].
func (r *Runner) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		if ctx.Err() != nil {
			return
		}
		n := narrate.New(in.ID, yield)
		fail := func(err error) { n.Fail(r.secrets.HideIn(err)) }
		c, err := r.connect(ctx)
		if err != nil {
			if ctx.Err() == nil {
				fail(err)
			}
			return
		}
		t := newTurn(r, c, in, n)
		if in.Begun == nil {
			err = t.begin(ctx)
		} else {
			err = t.reattach(ctx)
		}
		switch {
		case ctx.Err() != nil:
			t.cancel(ctx)
		case err != nil:
			fail(err)
		default:
			n.Done()
		}
	}
}

// headers adds the configured headers to requests for the server of the agent. A card may
// name another server, which must not get them: they may have secrets.
type headers struct {
	set    map[string]string
	server string // scheme and host
	next   http.RoundTripper
}

// serverOf returns the scheme and the host of a URL.
func serverOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// RoundTrip implements [http.RoundTripper].
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if serverOf(r.URL) != h.server {
		return h.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	for name, value := range h.set {
		r.Header.Set(name, value)
	}
	return h.next.RoundTrip(r)
}

// connect reads the card of the agent and returns a client.
func (r *Runner) connect(ctx context.Context) (client, error) {
	at, err := url.Parse(r.options.URL)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the url of the agent %s is none", r.options.Name).Because(err)
	}
	client := &http.Client{ // without a time-out: a stream may take long
		Transport: headers{r.options.Header, serverOf(at), r.options.HTTP},
		// The headers may have secrets, which another server must not get.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	limited, cancel := context.WithTimeout(ctx, r.options.Start)
	defer cancel()
	var c card
	resolver := agentcard.Resolver{Client: client, CardParser: c.parse}
	current, err := resolver.Resolve(limited, strings.TrimSuffix(r.options.URL, "/"))
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the card of the agent %s cannot be read: %s", r.options.Name, narrate.Unreached(err, r.secrets)).Because(err).
			WithHint("check the url of the agent, and whether its server runs")
	}
	if !c.speaksV1() && c.URL != "" && (c.Transport == "" || c.Transport == string(sdk.TransportProtocolJSONRPC)) {
		return &oldClient{c.URL, c.Capabilities.Streaming, client}, nil
	}
	own, err := a2aclient.NewFromCard(ctx, current, a2aclient.WithJSONRPCTransport(client), a2aclient.WithRESTTransport(client))
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unsupported, "the agent %s offers no transport that is supported: %s", r.options.Name, narrate.Brief(err.Error(), r.secrets)).Because(err).
			WithHint("JSON-RPC of A2A 1.0 and 0.3, and REST of 1.0 are supported")
	}
	return own, nil
}

// A card has what the card of an agent says about its versions.
type card struct {
	Interfaces []sdk.AgentInterface `json:"supportedInterfaces"` // of version 1.0
	URL        string               `json:"url"`                 // of version 0.3
	Transport  string               `json:"preferredTransport"`  // of version 0.3

	Capabilities struct {
		Streaming bool `json:"streaming"`
	} `json:"capabilities"`
}

// parse is an [agentcard.Parser]. It does not read more of a card of version 0.3 than
// its members here, because others have another form.
func (c *card) parse(raw []byte) (*sdk.AgentCard, error) {
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	if !c.speaksV1() {
		return &sdk.AgentCard{}, nil
	}
	return agentcard.DefaultCardParser(raw)
}

// speaksV1 reports whether the agent speaks version 1.0.
func (c *card) speaksV1() bool {
	return slices.ContainsFunc(c.Interfaces, func(i sdk.AgentInterface) bool { return i.ProtocolVersion == sdk.Version })
}

// A place is where the agent keeps a conversation: its context, and the task that waits
// for input, if there is one.
type place struct{ conversation, task string }

// encoded is the prefix of native ids that are base64, because the log allows few
// characters in an id.
const encoded = "a2a:"

// native returns the place as the id of a link.
func (p place) native() string {
	if p.task == "" && tapedeck.CheckID("the context", p.conversation) == nil && !strings.HasPrefix(p.conversation, encoded) {
		return p.conversation
	}
	return encoded + base64.RawURLEncoding.EncodeToString([]byte(p.conversation+"\n"+p.task))
}

// placeOf reads the id of a link.
func placeOf(native string) place {
	rest, ok := strings.CutPrefix(native, encoded)
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if !ok || err != nil {
		return place{conversation: native}
	}
	conversation, task, _ := strings.Cut(string(b), "\n")
	return place{conversation, task}
}

// place returns the place in which the thread continues, empty for a new conversation.
func (r *Runner) place(in *tapedeck.Invocation) place {
	if in.Link == nil || in.Link.Runner != r.link() {
		return place{}
	}
	return placeOf(in.Link.NativeID)
}

// rests reports whether an agent does nothing more for a task.
func rests(s sdk.TaskState) bool {
	return s.Terminal() || s == sdk.TaskStateInputRequired || s == sdk.TaskStateAuthRequired
}
