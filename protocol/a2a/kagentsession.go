package a2a

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// A kagentSession is a session in kagent's form.
type kagentSession struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	User    string     `json:"user_id"`
	Agent   string     `json:"agent_id"`
	Created time.Time  `json:"created_at"`
	Updated time.Time  `json:"updated_at"`
	Deleted *time.Time `json:"deleted_at"` // always null: a deleted session is not found
}

// inKagentForm returns a session. Its user is the one for whom the client asks: who may see
// it is decided by the token, not by a name in the query.
func (c *call) inKagentForm(s *tapedeck.Session) kagentSession {
	return kagentSession{
		ID: s.ID, Name: cmp.Or(s.Title, s.ID), User: userOf(c.r), Agent: s.Agent, Created: s.Created, Updated: s.Updated,
	}
}

// agentOf returns the agent that kagent calls namespace/name.
func (c *call) agentOf(ref string) (tapedeck.Agent, error) {
	if name, _, rest := c.inNamespace("", ref); name != "" && rest == "" {
		return c.Handler.agent(name)
	}
	return c.Handler.agent(ref)
}

func (c *call) createSession(string) (any, error) {
	body, err := c.readBody()
	if err != nil {
		return nil, err
	}
	var in struct {
		ID    string  `json:"id"`
		Name  string  `json:"name"`
		Agent *string `json:"agent_ref"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the body does not have the form of a session: %s", plain(err))
	}
	if in.Agent == nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the body has no agent_ref").WithHint(`name the agent of the session: {"agent_ref": "namespace/name"}`)
	}
	a, err := c.agentOf(*in.Agent)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the agent_ref is not one of an agent here").Because(err).WithHint("GET /api/v1/agents lists the agents")
	}
	s, err := c.Verbs.Create(c.r.Context(), api.NewSession{ID: in.ID, Title: in.Name, Agent: a.Name})
	if err != nil {
		return nil, err
	}
	return c.inKagentForm(&s), nil
}

func (c *call) getSession(id string) (any, error) {
	s, err := c.Sessions.Head(c.r.Context(), id)
	if err == nil && s.Kind != tapedeck.KindSession {
		err = tapedeck.Errorf(tapedeck.NotFound, "there is no session %s", id)
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"session": c.inKagentForm(&s)}, nil
}

func (c *call) deleteSession(id string) (any, error) {
	return struct{}{}, c.Verbs.Delete(c.r.Context(), id)
}

func (c *call) listSessions(string) (any, error) { return c.newest("") }

func (c *call) agentSessions(ref string) (any, error) {
	a, err := c.agentOf(strings.TrimSuffix(ref, "/"))
	if err != nil {
		return nil, err
	}
	return c.newest(a.Name)
}

// newest returns the newest sessions of an agent, "" for all.
func (c *call) newest(agent string) (any, error) {
	page, err := c.Sessions.List(c.r.Context(), tapedeck.Filter{Agent: agent, Limit: listSessions})
	if err != nil {
		return nil, err
	}
	out := make([]kagentSession, 0, len(page.Sessions))
	for i := range page.Sessions {
		out = append(out, c.inKagentForm(&page.Sessions[i]))
	}
	return out, nil
}
