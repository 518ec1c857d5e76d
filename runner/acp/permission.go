package acp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonrpc"
	"github.com/tapedeck/tapedeck/internal/proposal"
)

// An answer is the decision of people about one request.
type answer struct {
	id       json.RawMessage // the id of the request
	option   string          // the chosen option; "" if no option was chosen
	rejected bool            // whether the option rejects the request
}

// newAnswer returns the answer that chooses an option. If the question does not have the
// option, the answer chooses none.
func newAnswer(id json.RawMessage, options []tapedeck.PermissionOption, option string) answer {
	for _, o := range options {
		if o.ID == option {
			return answer{id, option, strings.HasPrefix(o.Kind, "reject")}
		}
	}
	return answer{id: id}
}

// maxTitle is the limit of the question's text, in bytes. Several agents put the whole
// command there.
const maxTitle = 16 << 10

// ask asks people for the permission that the agent requests. It first announces the
// tool call if it is new, because the question is about it.
func (c *conversation) ask(m jsonrpc.Message) {
	var q struct {
		Session string          `json:"sessionId"`
		Call    json.RawMessage `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	if json.Unmarshal(m.Params, &q) != nil || c.muted {
		c.answered(m.ID, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "permission cannot be requested now"})
		return
	}
	c.enter(q.Call)
	about := c.announce(q.Call)
	c.asked++
	question := tapedeck.Question{
		ID: c.in.ID + ".p" + strconv.Itoa(c.asked), ToolCallID: c.n.ToolID(about.ID), Message: proposal.Text(about.title(), maxTitle),
		Action:  c.proposed(about),
		Options: []tapedeck.PermissionOption{},
	}
	for _, o := range q.Options {
		question.Options = append(question.Options, tapedeck.PermissionOption{ID: o.ID, Name: c.quirks.nameOf(o.Name), Kind: o.Kind})
	}
	if c.in.Ask == nil || c.cancelled || c.resting || len(question.Options) == 0 {
		c.reply(newAnswer(m.ID, question.Options, refusal(question.Options, c.cancelled)))
		return
	}
	c.others.Go(func() { c.wait(m.ID, question) })
}

// refusal returns the option that rejects a request; "" if there is none. For a
// cancelled run it returns "", because the protocol demands an answer without an option.
func refusal(options []tapedeck.PermissionOption, cancelled bool) string {
	i := slices.IndexFunc(options, func(o tapedeck.PermissionOption) bool { return o.Kind == "reject_once" })
	if i < 0 || cancelled {
		return ""
	}
	return options[i].ID
}

// wait waits for the decision of people.
func (c *conversation) wait(id json.RawMessage, q tapedeck.Question) {
	a := answer{id: id}
	if given, err := c.in.Ask(c.ctx, q); err == nil {
		a = newAnswer(id, q.Options, given.Option)
	}
	select {
	case c.answers <- a:
	case <-c.life.Done():
	}
}

// reply sends a decision to the agent.
func (c *conversation) reply(a answer) {
	outcome := map[string]string{"outcome": "cancelled"}
	if a.option != "" && c.ctx.Err() == nil {
		outcome = map[string]string{"outcome": "selected", "optionId": a.option}
		c.denied = c.denied || a.rejected
	}
	c.answered(a.id, map[string]any{"outcome": outcome}, nil)
}

// answered answers a request, in a goroutine because the agent may not read its input.
func (c *conversation) answered(id json.RawMessage, result any, failed *jsonrpc.Error) {
	c.others.Go(func() { _ = c.peer.Reply(c.life, id, result, failed) })
}
