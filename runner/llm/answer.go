package llm

import (
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/chat"
)

// An answer is one attempt of the model to answer a request: thoughts, a message, and
// tool calls, which are part of the message. If the request fails or is cancelled, open
// parts stay open, because the model did not end them.
type answer struct {
	run      *run
	thought  string // id of the open thought; "" if none is open
	thoughts int
	message  string         // id of the open message; "" if none is open
	halves   payload.Halves // of the open thought or message; not both are open
	calls    []*call
	byIndex  map[int]*call // by the provider's index, which is not always the order in which calls begin
	finish   string
	nothing  string // what the server sent, if that has no thought, message or call
}

// A call is a tool call of the model.
type call struct {
	id, name string
	args     strings.Builder
	halves   payload.Halves
}

func (a *answer) add(d chat.Delta) error {
	switch d.Kind {
	case chat.Reasoning:
		return a.think(d.Text)
	case chat.Text:
		return a.say(d.Text)
	case chat.CallBegin:
		return a.begin(d)
	case chat.CallArgs:
		c := a.byIndex[d.Call]
		return a.args(c, c.halves.Next(d.Text))
	case chat.Finish:
		a.finish, a.nothing = d.Text.Whole(), d.Nothing
		return a.end()
	case chat.Used:
		return a.run.report(d.Usage)
	}
	return nil
}

// messageID returns the id of the message of this answer.
func (a *answer) messageID() string { return a.id("m") }

// id returns an id of this answer. Each attempt has its own, so that a client which has
// seen several does not mix them.
func (a *answer) id(prefix string) string {
	id := fmt.Sprintf("%s.%s%d", a.run.in.ID, prefix, a.run.turn)
	if a.run.attempt > 1 {
		id += fmt.Sprintf("-%d", a.run.attempt)
	}
	return id
}

func (a *answer) args(c *call, text string) error {
	if text == "" {
		return nil // it was half of a character
	}
	c.args.WriteString(text)
	return a.run.emit(payload.ToolCallArgs{ToolCallID: c.id, Delta: payload.Piece(text)})
}

func (a *answer) think(delta payload.Piece) error {
	if a.thought == "" {
		if err := a.closeMessage(); err != nil {
			return err
		}
		a.thoughts++
		a.thought = fmt.Sprintf("%s.%d", a.id("r"), a.thoughts)
		if err := a.emit(
			payload.ReasoningStart{MessageID: a.thought},
			payload.ReasoningMessageStart{MessageID: a.thought, Role: payload.RoleReasoning},
		); err != nil {
			return err
		}
	}
	return a.grow(a.halves.Next(delta))
}

// grow continues the open thought or message.
func (a *answer) grow(text string) error {
	switch {
	case text == "":
		return nil // it was half of a character
	case a.thought != "":
		return a.run.emit(payload.ReasoningMessageContent{MessageID: a.thought, Delta: payload.Piece(text)})
	}
	return a.run.emit(payload.TextMessageContent{MessageID: a.message, Delta: payload.Piece(text)})
}

func (a *answer) say(delta payload.Piece) error {
	if a.message == "" {
		if err := a.closeThought(); err != nil {
			return err
		}
		a.message = a.messageID()
		if err := a.run.emit(payload.TextMessageStart{MessageID: a.message, Role: payload.RoleAssistant}); err != nil {
			return err
		}
	}
	return a.grow(a.halves.Next(delta))
}

func (a *answer) begin(d chat.Delta) error {
	if err := a.closeBoth(); err != nil {
		return err
	}
	c := &call{id: a.run.memory.callID(d.ID), name: d.Name}
	if c.name == "" {
		c.name = "unknown"
	}
	a.calls, a.byIndex[d.Call] = append(a.calls, c), c
	return a.run.emit(payload.ToolCallStart{ToolCallID: c.id, ToolCallName: c.name, ParentMessageID: a.messageID()})
}

func (a *answer) emit(all ...payload.Payload) error {
	for _, p := range all {
		if err := a.run.emit(p); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) closeBoth() error {
	if err := a.closeThought(); err != nil {
		return err
	}
	return a.closeMessage()
}

func (a *answer) closeThought() error {
	id := a.thought
	if id == "" {
		return nil
	}
	if err := a.grow(a.halves.End()); err != nil {
		return err
	}
	a.thought = ""
	return a.emit(payload.ReasoningMessageEnd{MessageID: id}, payload.ReasoningEnd{MessageID: id})
}

func (a *answer) closeMessage() error {
	id := a.message
	if id == "" {
		return nil
	}
	if err := a.grow(a.halves.End()); err != nil {
		return err
	}
	a.message = ""
	return a.run.emit(payload.TextMessageEnd{MessageID: id})
}

// end ends the open parts of a finished answer. The ends of calls are last, in the order
// in which the calls began.
func (a *answer) end() error {
	if err := a.closeBoth(); err != nil {
		return err
	}
	for _, c := range a.calls {
		if err := a.args(c, c.halves.End()); err != nil {
			return err
		}
		if err := a.run.emit(payload.ToolCallEnd{ToolCallID: c.id}); err != nil {
			return err
		}
	}
	return nil
}

// stopError returns an error if the provider stopped the answer before its end, or if the whole
// run has nothing to show. An answer with calls is no error: the results tell the model which
// calls were wrong. After others a model may have nothing to add.
func (a *answer) stopError() error {
	switch {
	case len(a.calls) > 0:
	case a.finish == "length":
		return tapedeck.Errorf(tapedeck.TooLarge, "the model has reached its token limit for one answer").
			WithHint("raise max_tokens in the parameters of the agent")
	case a.finish == "content_filter":
		return tapedeck.Errorf(tapedeck.Unavailable, "the provider's content filter has stopped the answer")
	case a.nothing != "" && !a.run.spoke:
		return tapedeck.Errorf(tapedeck.Unavailable, "the model has said nothing and called no tool; its server sent %s", a.nothing)
	}
	return nil
}
