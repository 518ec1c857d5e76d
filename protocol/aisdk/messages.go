package aisdk

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// pageMessages is how many messages one question to the views asks for.
const pageMessages = 10_000

// BegunHeader is the header of an answer with messages that says "false" of a chat that has not
// begun: it has no session yet, which is no error. A chat that has begun lacks it.
const BegunHeader = "Tapedeck-Begun"

// messages answers with the conversation of a chat as UIMessages. The message of the
// open run is not among them: resuming its stream gives all of it, and a client before
// version 7 would add that to what it has.
func (h *handler) messages(w http.ResponseWriter, r *http.Request) error {
	version, err := versionOf(r)
	if err != nil {
		return err
	}
	head, err := h.find(r)
	if notBegun(head, err) {
		w.Header().Set(BegunHeader, "false")
		return httpapi.WriteJSON(w, http.StatusOK, []uiMessage{})
	}
	if err != nil {
		return err
	}
	now, err := h.conversation(r.Context(), head.ID, head.Head)
	if err != nil {
		return err
	}
	open, _ := head.Run(tapedeck.MainThread)
	return httpapi.WriteJSON(w, http.StatusOK, httpapi.OrEmpty(uiMessages(&now, open.Invocation, version)))
}

// conversation returns the whole conversation of a chat as of an offset.
func (h *handler) conversation(ctx context.Context, id string, head int64) (view.Snapshot, error) {
	q := view.Query{At: &head, Thread: tapedeck.MainThread, Limit: pageMessages}
	s, err := h.Views.Snapshot(ctx, id, q)
	if err != nil {
		return s, err
	}
	for earlier := s.Earlier; earlier > 0 && len(s.Messages) > 0; {
		q.Before = s.Messages[0].Offset
		page, err := h.Views.Snapshot(ctx, id, q)
		if err != nil {
			return s, err
		}
		if len(page.Messages) == 0 {
			break
		}
		s.Messages = append(page.Messages, s.Messages...)
		s.Calls = append(page.Calls, s.Calls...)
		s.Runs = append(page.Runs, s.Runs...)
		earlier = page.Earlier
	}
	return s, nil
}

// A uiMessage is a UIMessage as the server writes it.
type uiMessage struct {
	ID       string            `json:"id"`
	Role     string            `json:"role"`
	Metadata map[string]place  `json:"metadata"`
	Parts    []json.RawMessage `json:"parts"`
}

// An item is a part of the message of a run, with the offset at which it began.
type item struct {
	offset     int64
	invocation string
	turn       int
	whole      *uiMessage      // a message of its own, nil for a part
	part       json.RawMessage // nil for a message of its own, and for a run that has failed before its first part
}

// uiMessages returns the messages of a conversation, without that of the open run. The
// parts of a run are in the order in which its stream begins them.
func uiMessages(now *view.Snapshot, open string, version int) (out []uiMessage) {
	all := chainsOf(now)
	open = all.message(open)
	type step struct {
		at         int // the place of the message
		invocation string
		turn       int
	}
	steps := map[string]step{} // the newest one of each message
	for _, it := range items(now, &all, version) {
		if it.whole != nil {
			out = append(out, *it.whole)
			continue
		}
		id := all.message(it.invocation)
		if id == open {
			continue
		}
		s, ok := steps[id]
		if !ok {
			s.at = len(out)
			out = append(out, uiMessage{id, payload.RoleAssistant, metadataOf(all.of[it.invocation]), []json.RawMessage{}})
		}
		if !ok || it.invocation != s.invocation || it.turn != 0 && it.turn != s.turn {
			out[s.at].Parts = append(out[s.at].Parts, chunk("step-start"))
			steps[id] = step{s.at, it.invocation, it.turn}
		}
		if it.part != nil {
			out[s.at].Parts = append(out[s.at].Parts, it.part)
		}
	}
	return out
}

func metadataOf(c chain) map[string]place {
	r := c.last()
	p := placeOf(c)
	if r.EndOffset != nil {
		p.Next = *r.EndOffset + 1
	}
	if r.Status != tapedeck.StatusComplete && r.Interrupts == nil {
		p.Status = r.Status
	}
	if r.Error != nil {
		p.Error = r.Error.Message
	}
	return map[string]place{metaKey: p}
}

// placeOf returns where a message is.
func placeOf(c chain) place {
	p := place{Offset: c[0].Offset, Invocation: c.message()}
	if len(c) > 1 {
		p.Runs = c.ids()
	}
	return p
}

// items returns what a conversation has, by offset.
func items(now *view.Snapshot, all *chains, version int) (list []item) {
	runs := map[string]*view.Run{}
	for i := range now.Runs {
		runs[now.Runs[i].Invocation] = &now.Runs[i]
	}
	for i := range now.Messages {
		m := &now.Messages[i]
		run := runs[m.Invocation]
		it := item{offset: m.Offset, invocation: m.Invocation, turn: m.Turn}
		switch {
		case m.Role == payload.RoleTool, m.Subagent != "", payload.PromptOf(m.Role, m.Metadata) != "":
			continue
		case run != nil && m.Role == payload.RoleUser && m.Offset > run.Offset:
			it.part = steeringPart(version, m.ID, m.Text)
		case run == nil || m.Offset < run.Offset || m.Role == payload.RoleUser || m.Role == payload.RoleSystem:
			if it.whole = wholeMessage(m, now, version); it.whole == nil {
				continue
			}
		default:
			if it.part = partOfMessage(m); it.part == nil {
				continue
			}
		}
		list = append(list, it)
	}
	for i := range now.Calls {
		k := &now.Calls[i]
		if run := runs[k.Invocation]; run != nil && k.Offset > run.Offset && k.Name != "" && k.Subagent == "" {
			list = append(list, item{offset: k.Offset, invocation: k.Invocation, turn: k.Turn, part: partOfCall(k, all.at(run), now, version)})
		}
	}
	if p := now.Plan; p != nil && runs[p.Invocation] != nil {
		part := chunk(dataPrefix+"plan", text("id", "plan"), encode("data", map[string]any{"entries": p.Entries}))
		list = append(list, item{offset: p.Offset, invocation: p.Invocation, part: part})
	}
	list = append(list, silent(now, all, list)...)
	slices.SortStableFunc(list, func(a, b item) int { return cmp.Compare(a.offset, b.offset) })
	return list
}

// silent returns the runs that ended early and said nothing: their messages say why.
func silent(now *view.Snapshot, all *chains, list []item) (more []item) {
	said := map[string]bool{}
	for _, it := range list {
		if it.whole == nil {
			said[all.message(it.invocation)] = true
		}
	}
	for i := range now.Runs {
		r := &now.Runs[i]
		if id := all.message(r.Invocation); r.Thread == tapedeck.MainThread && r.EndOffset != nil && r.Status != tapedeck.StatusComplete && r.Interrupts == nil && !said[id] {
			said[id] = true
			more = append(more, item{offset: r.Offset, invocation: r.Invocation})
		}
	}
	return more
}

// stateDone is the state of a text or reasoning that is complete.
const stateDone = "done"

// partOfMessage returns what an agent said as a part, nil for nothing.
func partOfMessage(m *view.Message) json.RawMessage {
	switch m.Role {
	case payload.RoleAssistant:
		return chunk("text", text("text", m.Text), text("state", stateDone))
	case payload.RoleReasoning:
		return chunk("reasoning", text("text", m.Text), text("state", stateDone))
	case payload.RoleActivity:
		return partOf(m.Activity, m.ID, m.Content)
	}
	return nil
}

// wholeMessage returns a message that is no part of the answer of a run: what a user or
// the system said, and the history that a client brought.
func wholeMessage(m *view.Message, now *view.Snapshot, version int) *uiMessage {
	out := &uiMessage{ID: m.ID, Role: m.Role, Metadata: map[string]place{metaKey: {Offset: m.Offset, Invocation: m.Invocation}}, Parts: []json.RawMessage{}}
	switch m.Role {
	case payload.RoleUser:
		out.Parts = append(out.Parts, userParts(m)...)
		return out
	case payload.RoleSystem:
		out.Parts = []json.RawMessage{chunk("text", text("text", m.Text))}
		return out
	case payload.RoleAssistant:
		if m.Text != "" {
			out.Parts = append(out.Parts, chunk("text", text("text", m.Text), text("state", stateDone)))
		}
		for i := range now.Calls {
			if k := &now.Calls[i]; k.MessageID == m.ID && k.Name != "" {
				out.Parts = append(out.Parts, partOfCall(k, nil, now, version))
			}
		}
		return out
	}
	return nil
}

// userParts returns the parts of a user's message.
func userParts(m *view.Message) (list []json.RawMessage) {
	var parts []contentPart
	if m.Parts == nil || json.Unmarshal(m.Parts, &parts) != nil {
		return []json.RawMessage{chunk("text", text("text", m.Text))}
	}
	for _, p := range parts {
		switch {
		case p.Text != nil:
			list = append(list, chunk("text", text("text", *p.Text)))
		case p.Source != nil:
			list = append(list, userFile(&p))
		}
	}
	return list
}

func userFile(p *contentPart) json.RawMessage {
	media, url := p.Source.MimeType, p.Source.Value
	if media == "" {
		media = p.Type + "/*"
	}
	if p.Source.Type == "data" {
		url = "data:" + media + ";base64," + url
	}
	name := member{}
	if p.Metadata != nil && p.Metadata.Filename != "" {
		name = text("filename", p.Metadata.Filename)
	}
	return chunk(chunkFile, text("mediaType", media), name, text("url", url))
}

// partOfCall returns a call as a part. runs are those of its message, nil for a call of the history.
func partOfCall(k *view.ToolCall, runs chain, now *view.Snapshot, version int) json.RawMessage {
	var approval *uiApproval
	if version >= 6 {
		approval = approvalOf(k, runs, now)
	}
	state := func(state string, more ...member) json.RawMessage {
		return chunk(toolPrefix+k.Name, append([]member{text("toolCallId", k.ID), text("state", state), {"input", inputOf(k.Arguments)}, approval.member()}, more...)...)
	}
	switch {
	case approval != nil && approval.denied():
		return state(stateOutputDenied)
	case k.Result != nil && k.Status == tapedeck.StatusFailed:
		return state(stateOutputError, text("errorText", cmp.Or(k.Result.Error, k.Result.Text, "the tool failed")))
	case k.Result != nil:
		return state(stateOutputAvailable, member{"output", outputOf(k.Result.Text)})
	case runs == nil:
	case runs.last().Status != tapedeck.StatusComplete && runs.last().Interrupts == nil:
		return state(stateOutputError, text("errorText", unanswered))
	case approval != nil && approval.Approved == nil:
		return state("approval-requested")
	}
	return state(stateInputAvailable)
}

// A uiApproval is the approval of a part.
type uiApproval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"` // nil before the answer
}

func (a *uiApproval) denied() bool { return a.Approved != nil && !*a.Approved }

func (a *uiApproval) member() member {
	if a == nil {
		return member{}
	}
	return encode("approval", a)
}

// approvalOf returns the question about a call, with its answer; nil if nobody asked.
func approvalOf(k *view.ToolCall, runs chain, now *view.Snapshot) *uiApproval {
	for i := range now.Permissions {
		p := &now.Permissions[i]
		if p.ToolCallID != k.ID || p.Invocation != k.Invocation || p.Option == "" {
			continue
		}
		yes := slices.ContainsFunc(p.Options, func(o view.PermissionOption) bool { return o.ID == p.Option && slices.Contains(allowing, o.Kind) })
		if yes || k.Result == nil || k.Status == tapedeck.StatusFailed { // otherwise the tool has answered all the same
			return &uiApproval{p.ID, &yes}
		}
	}
	for _, r := range runs {
		id := interruptOf(r, k.ID)
		switch {
		case id == "":
		case k.Result != nil:
			return &uiApproval{id, new(!k.Result.Denied)}
		default:
			return &uiApproval{ID: id}
		}
	}
	if k.Result != nil && k.Result.Denied {
		return &uiApproval{k.ID, new(false)} // its run is not known any more
	}
	return nil
}

// interruptOf returns the id of the question about a call with which a program elsewhere
// has ended its run, "" for none.
func interruptOf(run *view.Run, call string) string {
	list := interruptsOf(run)
	i := slices.IndexFunc(list, func(q payload.Interrupt) bool { return q.ToolCallID == call })
	if i < 0 {
		return ""
	}
	return list[i].ID
}

// asks reports whether a program elsewhere has ended its run with a question.
func asks(run *view.Run, id string) bool {
	return slices.ContainsFunc(interruptsOf(run), func(q payload.Interrupt) bool { return q.ID == id })
}

func interruptsOf(run *view.Run) (list []payload.Interrupt) {
	if run.Interrupts == nil || json.Unmarshal(run.Interrupts, &list) != nil {
		return nil
	}
	return list
}
