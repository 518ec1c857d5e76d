package a2a

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// WellKnown are the paths of cards: of the default agent at the root of the server, and
// of each agent below its path. The second one is that of version 0.2.
var WellKnown = []string{"/.well-known/agent-card.json", "/.well-known/agent.json"}

// extensionURI names the abilities of this server beyond the protocol.
const extensionURI = "https://github.com/tapedeck/tapedeck/blob/main/docs/protocol/a2a.md"

// A card describes an agent to clients of both versions: the members of version 1.0, and
// those in which version 0.3 differs.
type card struct {
	sdk.AgentCard
	URL                string         `json:"url"`
	PreferredTransport string         `json:"preferredTransport"`
	ProtocolVersion    string         `json:"protocolVersion"`
	Interfaces         []transport    `json:"additionalInterfaces"`
	Extended           bool           `json:"supportsAuthenticatedExtendedCard"`
	Metadata           map[string]any `json:"metadata,omitempty"`
}

// A transport is an interface of version 0.3.
type transport struct {
	URL       string `json:"url"`
	Transport string `json:"transport"`
}

// cardOf returns the card of an agent at a path. The extended card also says which
// abilities the agent has and whether it can run.
func (c *call) cardOf(a tapedeck.Agent, base string, extended bool) card {
	url := c.root() + base
	description := cmp.Or(a.Description, "The agent "+a.Name+".")
	out := card{
		AgentCard: sdk.AgentCard{
			Name: a.Name, Description: description, Version: c.Version,
			SupportedInterfaces: []*sdk.AgentInterface{
				{URL: url, ProtocolBinding: sdk.TransportProtocolJSONRPC, ProtocolVersion: "1.0"},
				{URL: url, ProtocolBinding: sdk.TransportProtocolHTTPJSON, ProtocolVersion: "1.0"},
				{URL: url, ProtocolBinding: sdk.TransportProtocolJSONRPC, ProtocolVersion: "0.3"},
			},
			Capabilities: sdk.AgentCapabilities{
				Streaming: true, PushNotifications: c.push != nil, ExtendedAgentCard: true,
				Extensions: []sdk.AgentExtension{{URI: extensionURI, Description: "resubscribe with Last-Event-ID, and rewind"}},
			},
			DefaultInputModes: []string{"text/plain", "application/json"}, DefaultOutputModes: []string{"text/plain", "application/json"},
			Skills: []sdk.AgentSkill{{ID: a.Name, Name: a.Name, Description: description, Tags: []string{cmp.Or(a.Kind, "agent")}}},
		},
		URL: url, PreferredTransport: "JSONRPC", ProtocolVersion: "0.3.0", Extended: true,
		Interfaces: []transport{{url, "JSONRPC"}},
	}
	if extended {
		out.Metadata = map[string]any{"kind": a.Kind, "capabilities": a.Capabilities, "taskPolicy": c.Policy}
		if a.Unavailable != "" {
			out.Metadata["unavailable"] = a.Unavailable
		}
	}
	return out
}

// root returns the address of the server as the client used it, with the prefix that a
// program removed from the path. A proxy that ends TLS says so in X-Forwarded-Proto.
func (c *call) root() string {
	scheme := "http"
	if c.r.TLS != nil || strings.EqualFold(c.r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	return scheme + "://" + c.r.Host + httpapi.Prefix(c.r)
}

// card answers with the card of the agent.
func (c *call) card() error {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return problem.MethodNotAllowed(c.w, c.r, http.MethodGet)
	}
	body := encodeJSON(c.cardOf(c.agent, c.base, false))
	sum := fnv.New64a()
	_, _ = sum.Write(body) // a hash never fails
	tag := fmt.Sprintf(`"%x"`, sum.Sum64())
	h := c.w.Header()
	h.Set("Cache-Control", "no-cache") // a client asks again each time, and gets 304
	h.Set("ETag", tag)
	if c.r.Header.Get("If-None-Match") == tag {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	httpapi.WriteBytes(c.w, http.StatusOK, body)
	return nil
}

// defaultCard answers with the card of the default agent.
func (h *Handler) defaultCard(w http.ResponseWriter, r *http.Request) error {
	agents := h.Verbs.Agents()
	if len(agents) == 0 {
		return tapedeck.Errorf(tapedeck.NotFound, "this server has no agents")
	}
	c := &call{Handler: h, w: w, r: r, agent: agents[0], base: Root + "/" + agents[0].Name}
	return c.card()
}
