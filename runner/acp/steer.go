package acp

import (
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tapedeck/tapedeck/runner"
)

// The protocol has no message for an agent that is working. Agents that can take one
// announce an extension, in "_meta" of their answer to initialize, and answer its request
// with what became of the message.
const (
	promptMethod = "session/prompt"

	steerMethod = "_session/steering"
	injected    = "injected"       // the agent has the message in the turn that is open
	newTurn     = "startedNewTurn" // the turn had just ended, and the agent began another one, whose end it reports to nobody
)

// steering is what users have sent to the agent while it worked.
type steering struct {
	can     bool         // the agent announces the extension
	refused bool         // it has not taken a message in this turn
	texts   []string     // what it has not got yet, oldest first
	done    chan outcome // receives its answer to the oldest; nil if it was not sent
}

// meta is the part of the answer to initialize that announces the extension.
type meta struct {
	Steering struct {
		Supported bool `json:"supported"`
	} `json:"steering"`
}

// news returns the channel that receives when users have sent something to the turn that
// a request began. It is nil for other requests.
func (c *conversation) news(method string) <-chan struct{} {
	if method != promptMethod || !c.steering.can || c.cancelled {
		return nil
	}
	return c.in.Steered
}

// hear takes what users have sent.
func (c *conversation) hear() error {
	texts, err := runner.Steered(c.ctx, &c.in)
	c.steering.texts = append(c.steering.texts, texts...)
	return err
}

// steer sends the oldest message, unless the agent has not answered the one before.
func (c *conversation) steer() {
	s := &c.steering
	if len(s.texts) == 0 || s.done != nil || s.refused || c.cancelled {
		return
	}
	s.done = c.request(c.life, steerMethod, map[string]any{
		"sessionId": c.native, "prompt": []sdk.ContentBlock{sdk.TextBlock(s.texts[0])},
		"_meta": map[string]any{"steering": map[string]string{"idleBehavior": "promptRequired"}}, // or it would begin a turn whose end it does not report
	})
}

// steered handles the answer to a message. What the agent has not taken is its next
// prompt.
func (c *conversation) steered(o outcome) {
	var got struct {
		Outcome string `json:"outcome"`
	}
	_ = json.Unmarshal(o.raw, &got)
	if c.steering.done = nil; o.err == nil && got.Outcome == injected {
		c.steering.texts = c.steering.texts[1:]
		c.steer()
		return
	}
	c.steering.refused = true
	if got.Outcome == newTurn {
		c.others.Go(func() { _ = c.peer.Notify(c.life, "session/cancel", map[string]string{"sessionId": c.native}) })
	}
}

// prompt gives the agent its task, and then what it has not taken while it worked. It
// returns the agent's last answer.
func (c *conversation) prompt(task string) (raw json.RawMessage, err error) {
	for blocks := []sdk.ContentBlock{sdk.TextBlock(task)}; len(blocks) > 0 && err == nil; {
		c.steering.refused = false
		raw, err = c.call(promptMethod, sdk.PromptRequest{SessionId: sdk.SessionId(c.native), Prompt: blocks}, 0)
		if blocks = nil; err != nil || !c.steering.can || !hasEnded(raw) {
			break
		}
		if c.steering.done != nil {
			c.steered(c.await(steerMethod, c.steering.done, c.runner.options.Grace))
		}
		if c.cancelled {
			return nil, c.ctx.Err()
		}
		if err = c.hear(); err != nil || len(c.steering.texts) == 0 {
			break
		}
		c.spend(raw)
		c.n.EndMessage("")
		for _, text := range c.steering.texts {
			blocks = append(blocks, sdk.TextBlock(text))
		}
		c.steering.texts = nil
	}
	return raw, err
}

// hasEnded reports whether an answer to a prompt says that the agent is done.
func hasEnded(raw json.RawMessage) bool {
	var end sdk.PromptResponse
	return json.Unmarshal(raw, &end) == nil && end.StopReason == sdk.StopReasonEndTurn
}
