package aisdk

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// denial is the error of a call that the user has denied.
const denial = "the user denied the call"

// unanswered is the error of a call whose run ended before its tool answered.
const unanswered = "the run ended before the tool answered"

// tool gathers the chunks of an event of a tool call.
func (c *encoder) tool(e *tapedeck.Event) {
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "toolCallId"))
	k := c.calls[id]
	switch {
	case id == "":
	case e.Type == tapedeck.ToolCallStart:
		if name := jsonobj.StringOf(jsonobj.Member(e.Data, "toolCallName")); name != "" {
			c.content(e.Turn)
			c.calls[id] = &call{name: name, offset: e.Offset}
			c.put(chunkToolStart, text("toolCallId", id), text("toolName", name))
		}
	case k == nil:
	case e.Type == tapedeck.ToolCallArgs:
		if raw := jsonobj.Member(e.Data, "delta"); jsonobj.IsString(raw) {
			if k.arguments = append(k.arguments, jsonobj.PieceOf(raw)...); !k.whole {
				c.join(chunkToolDelta, id, raw)
			}
		}
	case e.Type == tapedeck.ToolCallEnd:
		c.input(id)
		k.arguments = nil
	default:
		c.result(e)
	}
}

// input gathers the input of a call as far as it is known.
func (c *encoder) input(id string) {
	k := c.calls[id]
	k.whole = true
	c.put(chunkToolInput, text("toolCallId", id), text("toolName", k.name), member{"input", inputOf(payload.Whole(string(k.arguments)))})
}

func (c *encoder) result(e *tapedeck.Event) {
	d, err := payload.DecodeAs[payload.ToolCallResult](*e)
	if err != nil {
		return
	}
	m := payload.Message{Content: d.Content}
	failure := failureOf(e.Data, m.Text())
	denied := tapedeck.MetaOf(json.RawMessage(jsonobj.Member(e.Data, "metadata"))).Denied
	if i := slices.IndexFunc(c.asked, func(q payload.Interrupt) bool { return q.ToolCallID == d.ToolCallID }); i >= 0 {
		c.answered(c.asked[i].ID, d.ToolCallID, !denied)
	}
	if denied {
		c.deny(d.ToolCallID)
		return
	}
	c.answer(d.ToolCallID, m.Text(), failure)
}

// failureOf returns why a tool failed, "" if it did not.
func failureOf(data json.RawMessage, answer string) string {
	if raw := jsonobj.Member(data, "error"); jsonobj.IsString(raw) && jsonobj.StringOf(raw) != "" {
		return jsonobj.StringOf(raw)
	}
	if !tapedeck.MetaOf(json.RawMessage(jsonobj.Member(data, "metadata"))).Error {
		return ""
	}
	if answer == "" {
		return "the tool failed"
	}
	return answer
}

// answer gathers the answer of a tool; failure is why it failed, "" if it did not.
func (c *encoder) answer(id, answer, failure string) {
	k := c.calls[id]
	if k == nil || k.denied && failure != "" { // the client shows that it was denied
		return
	}
	if !k.whole {
		c.input(id)
	}
	if k.answered = true; failure != "" {
		c.put(chunkToolError, text("toolCallId", id), text("errorText", failure))
		return
	}
	c.put(chunkToolOutput, text("toolCallId", id), member{"output", outputOf(answer)})
}

// closeCalls gathers an error for each call that nobody answers any more.
func (c *encoder) closeCalls() { c.closeCallsFrom(0) }

// closeCallsFrom is closeCalls for the calls that began at an offset or later.
func (c *encoder) closeCallsFrom(offset int64) {
	for _, id := range sortedKeys(c.calls) {
		if k := c.calls[id]; !k.answered && k.offset >= offset {
			c.answer(id, "", unanswered)
		}
	}
}

// permission gathers the chunks of a question or of its answer. A question about a call
// becomes an approval when the stream ends for it, see [encoder.wait]. Any other is data:
// the AI SDK has no questions besides approvals, and version 5 has none at all.
func (c *encoder) permission(e *tapedeck.Event) {
	if e.Type == tapedeck.PermissionRequested {
		var q tapedeck.Question
		if json.Unmarshal(e.Data, &q) == nil && q.ID != "" {
			c.questions = append(c.questions, question{q, e.Offset})
			if !c.isApproval(&q) {
				c.content(e.Turn)
				c.question(&q, "")
			}
		}
		return
	}
	var a tapedeck.Choice
	if json.Unmarshal(e.Data, &a) != nil {
		return
	}
	i := slices.IndexFunc(c.questions, func(q question) bool { return q.ID == a.ID })
	if i < 0 {
		return
	}
	q := c.questions[i]
	c.questions = slices.Delete(c.questions, i, i+1)
	switch {
	case !c.isApproval(&q.Question):
		c.question(&q.Question, answerOf(a.Option))
	case a.Option == "" || c.calls[q.ToolCallID].answered:
	case q.approved(a.Option):
		c.answered(q.ID, q.ToolCallID, true)
	default:
		c.answered(q.ID, q.ToolCallID, false)
		c.deny(q.ToolCallID)
	}
}

// answered gathers what a user answered to a question about a call, for a client that has not
// asked: it gets the message from its start. The chunk of an answer is new in version 7. Before,
// a question would stay on the page while an approved tool works.
func (c *encoder) answered(id, call string, approved bool) {
	if c.from > 0 || approved && c.version < 7 {
		return
	}
	if c.approval(id, call); c.version >= 7 {
		c.put(chunkAnswered, text("approvalId", id), encode("approved", approved))
	}
}

// deny gathers that the user denied a call.
func (c *encoder) deny(call string) {
	k := c.calls[call]
	if k == nil || k.denied {
		return
	}
	if !k.whole {
		c.input(call)
	}
	k.denied, k.answered = true, true
	if c.version < 6 {
		c.put(chunkToolError, text("toolCallId", call), text("errorText", denial))
		return
	}
	c.put(chunkToolDenied, text("toolCallId", call))
}

// isApproval reports whether the client can show a question as the approval of a call.
func (c *encoder) isApproval(q *tapedeck.Question) bool {
	return c.version >= 6 && c.calls[q.ToolCallID] != nil
}

// cancelled is the answer to a question that nobody answered.
const cancelled = "cancelled"

func answerOf(option string) string {
	if option == "" {
		return cancelled
	}
	return option
}

// question gathers a question as data; answer is the id of the chosen option, "" if it
// is pending.
func (c *encoder) question(q *tapedeck.Question, answer string) {
	c.put(dataPrefix+"question", text("id", q.ID), encode("data", questionData{q, answer}))
}

// questionData is the data of a data-question.
type questionData struct {
	*tapedeck.Question
	Answer string `json:"answer,omitempty"`
}

// waits reports whether the stream must end because the client must answer: it sends its
// answers with the next request, and only after this stream has ended.
func (c *encoder) waits() bool {
	return c.begun && slices.ContainsFunc(c.questions, func(q question) bool { return c.isApproval(&q.Question) })
}

// wait ends the stream with the questions. next is the offset after which the stream
// continues.
func (c *encoder) wait(next int64) {
	for i := range c.questions {
		if q := &c.questions[i]; c.isApproval(&q.Question) {
			c.approval(q.ID, q.ToolCallID)
		}
	}
	c.pause()
	c.end("tool-calls", next)
}

// pause ends everything that is open. A client that continues the message in another
// stream knows no open part any more; the input of a call that is not complete is sent
// again when it is.
func (c *encoder) pause() {
	c.closeParts()
	for _, id := range sortedKeys(c.calls) {
		if !c.calls[id].whole {
			c.input(id)
		}
	}
	c.endStep()
	c.flush()
}

// approval asks for the approval of a call.
func (c *encoder) approval(id, call string) {
	k := c.calls[call]
	if k == nil || c.version < 6 {
		return
	}
	if !k.whole {
		c.input(call)
	}
	c.put(chunkApproval, text("approvalId", id), text("toolCallId", call))
}
