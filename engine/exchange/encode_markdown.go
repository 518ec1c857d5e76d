package exchange

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Limits of the entries that a transcript keeps until they are complete.
const (
	maxHeld      = 500
	maxHeldBytes = 8 << 20
	maxKnown     = 10_000 // ids of shown messages that are remembered
)

// A transcript writes a session for people. Messages and calls are in the order in
// which they began. Each is written when it is complete, so those after an
// incomplete one have to wait. If too much is waiting, the text so far is written,
// and continued later.
type transcript struct {
	*output
	held  []*entry
	bytes int
	open  map[entryKey]*entry
	seen  map[string]struct{}
	turn  string // the invocation of the last heading
	turns int
}

type entryKey struct{ kind, thread, id string }

// An entry is a message, a thought, or a tool call.
type entry struct {
	kind       string // "message", "thinking" or "call"
	thread     string
	invocation string
	who        string
	at         time.Time
	text       strings.Builder // or the arguments: the pieces; see whole
	result     *string
	failed     bool
	done       bool
	continued  bool // its beginning is already written
}

func (one *entry) whole() string { return payload.Whole(one.text.String()) }

func newTranscript(w *output) *transcript {
	return &transcript{output: w, open: map[entryKey]*entry{}, seen: map[string]struct{}{}}
}

func writeMarkdown(w *output, src *Source) error {
	var clock view.Clock
	for e, err := range src.all() {
		if err != nil {
			return err
		}
		clock.Apply(&e)
	}
	t := newTranscript(w)
	t.title(&src.Session, &clock)
	for e, err := range src.all() {
		if err != nil {
			return err
		}
		t.event(&e)
		if err := t.failed(); err != nil {
			return err
		}
	}
	t.flush(true)
	return nil
}

func (t *transcript) title(s *tapedeck.Session, clock *view.Clock) {
	title := s.Title
	if title == "" {
		title = s.ID
	}
	t.string("# ", inline(title), "\n\n")
	facts := []string{codeSpan(s.ID), s.Created.UTC().Format("2006-01-02 15:04 MST")}
	if clock.Axis == view.AxisTime {
		facts = append(facts, (time.Duration(clock.DurationMS)*time.Millisecond).Round(time.Second).String()+" long")
	}
	if s.Owner != "" {
		facts = append(facts, "owner "+inline(s.Owner))
	}
	if s.Agent != "" {
		facts = append(facts, "agent "+inline(s.Agent))
	}
	if s.Status != "" {
		facts = append(facts, string(s.Status))
	}
	if s.Parent != "" {
		facts = append(facts, "fork of "+codeSpan(s.Parent))
	}
	t.string(strings.Join(facts, " · "), "\n")
}

func (t *transcript) event(e *tapedeck.Event) {
	m := object(e.Data)
	switch e.Type {
	case tapedeck.MessageAdded:
		t.message(e, object(m["message"]))
	case tapedeck.MessagesSnapshot:
		messages, _ := list(m["messages"])
		for _, raw := range messages {
			t.message(e, object(raw))
		}
	case tapedeck.TextMessageStart:
		t.begin(e, "message", str(m["messageId"]), roleOf(m, e))
	case tapedeck.ReasoningMessageStart:
		t.begin(e, "thinking", str(m["messageId"]), "Thinking")
	case tapedeck.ToolCallStart:
		t.begin(e, "call", str(m["toolCallId"]), str(m["toolCallName"]))
	case tapedeck.TextMessageContent:
		t.add(e, "message", str(m["messageId"]), jsonobj.PieceOf(m["delta"]))
	case tapedeck.ReasoningMessageContent:
		t.add(e, "thinking", str(m["messageId"]), jsonobj.PieceOf(m["delta"]))
	case tapedeck.ToolCallArgs:
		t.add(e, "call", str(m["toolCallId"]), jsonobj.PieceOf(m["delta"]))
	case tapedeck.TextMessageEnd:
		t.end(e, "message", str(m["messageId"]))
	case tapedeck.ReasoningMessageEnd:
		t.end(e, "thinking", str(m["messageId"]))
	case tapedeck.ToolCallResult:
		t.result(e, m)
	case tapedeck.RunFinished, tapedeck.RunError:
		t.endRun(e, m)
	case tapedeck.PlanUpdated:
		t.plan(m["entries"])
	case tapedeck.SessionRewound, tapedeck.SessionCleared, tapedeck.SessionOverwritten, tapedeck.AttemptSuperseded, tapedeck.SessionForked:
		t.jump(e)
	}
	t.flush(false)
}

func roleOf(m tapedeck.Members, e *tapedeck.Event) string {
	for _, s := range []string{str(m["name"]), str(m["role"]), e.Actor} {
		if s != "" {
			return s
		}
	}
	return payload.RoleAssistant
}

func (t *transcript) key(e *tapedeck.Event, kind, id string) entryKey {
	return entryKey{kind, e.ThreadName(), id}
}

func (t *transcript) begin(e *tapedeck.Event, kind, id, who string) *entry {
	one := &entry{kind: kind, who: who, thread: e.ThreadName(), invocation: e.Invocation, at: e.Time}
	t.open[t.key(e, kind, id)] = one
	t.held = append(t.held, one)
	t.rememberMessage(one.thread, id)
	return one
}

// rememberMessage records that a message was shown. When maxKnown ids are known, it
// first drops all of them.
func (t *transcript) rememberMessage(thread, id string) {
	if len(t.seen) >= maxKnown {
		clear(t.seen)
	}
	t.seen[thread+"\x00"+id] = struct{}{}
}

// message writes a whole message, once.
func (t *transcript) message(e *tapedeck.Event, m tapedeck.Members) {
	id, role := str(m["id"]), str(m["role"])
	if _, known := t.seen[e.ThreadName()+"\x00"+id]; known || m == nil || role == payload.RoleActivity {
		return
	}
	if role == payload.RoleTool {
		t.result(e, tapedeck.Members{"toolCallId": m["toolCallId"], "content": m["content"], "error": m["error"]})
		t.rememberMessage(e.ThreadName(), id)
		return
	}
	kind, who := "message", roleOf(m, &tapedeck.Event{})
	if role == payload.RoleUser && e.Actor != "" {
		who = e.Actor
	}
	if role == payload.RoleReasoning {
		kind = "thinking"
	}
	calls, _ := list(m["toolCalls"])
	s := plain(m["content"])
	if e.Erased() {
		s = erased
	}
	if s != "" || len(calls) == 0 {
		one := t.begin(e, kind, id, who)
		one.text.WriteString(s)
		one.done = true
		t.bytes += len(s)
		delete(t.open, t.key(e, kind, id))
	}
	for _, raw := range calls {
		c := object(raw)
		f := object(c["function"])
		t.begin(e, "call", str(c["id"]), str(f["name"])).text.WriteString(str(f["arguments"]))
	}
}

func (t *transcript) add(e *tapedeck.Event, kind, id string, delta payload.Piece) {
	one := t.open[t.key(e, kind, id)]
	if one == nil { // it was written early because too much was waiting
		one = t.begin(e, kind, id, "")
		one.continued = true
	}
	if e.Erased() && !strings.HasSuffix(one.text.String(), erased) { // once, even if several parts are erased
		delta = erased
	}
	one.text.WriteString(string(delta))
	t.bytes += len(delta)
}

// erased replaces an erased text.
const erased = "*erased*"

func (t *transcript) end(e *tapedeck.Event, kind, id string) {
	if one := t.open[t.key(e, kind, id)]; one != nil {
		one.done = true
		delete(t.open, t.key(e, kind, id))
	}
}

func (t *transcript) result(e *tapedeck.Event, m tapedeck.Members) {
	key := t.key(e, "call", str(m["toolCallId"]))
	one := t.open[key]
	if one == nil {
		one = t.begin(e, "call", str(m["toolCallId"]), "")
		one.continued = true
	}
	s := plain(m["content"])
	if e.Erased() {
		s = erased
	}
	if why, ok := text(m["error"]); ok && why != "" {
		s, one.failed = strings.TrimSpace(s+"\n"+why), true
	}
	one.failed = one.failed || tapedeck.MetaOf(m["metadata"]).Error
	one.result, one.done = &s, true
	t.bytes += len(s)
	delete(t.open, key)
}

// endRun writes what the run left open, and how it ended if it did not complete.
func (t *transcript) endRun(e *tapedeck.Event, m tapedeck.Members) {
	for key, one := range t.open {
		if one.invocation == e.Invocation && one.thread == e.ThreadName() {
			one.done = true
			delete(t.open, key)
		}
	}
	t.flush(false)
	outcome := str(object(m["outcome"])["type"])
	switch {
	case e.Type == tapedeck.RunError:
		t.writeNote("The run failed: " + str(m["message"]))
	case outcome == payload.OutcomeCancelled:
		t.writeNote("The run was cancelled.")
	case outcome == payload.OutcomeInterrupt:
		t.writeNote("The run waits for an answer.")
	}
}

func (t *transcript) writeNote(s string) {
	t.flush(true)
	t.string("\n*", inline(s), "*\n")
}

func (t *transcript) jump(e *tapedeck.Event) {
	j, ok := e.Jump()
	what := "Back to offset "
	switch {
	case !ok:
		what, j.To = "Forked at offset ", e.Offset
	case j.Attempt:
		t.writeNote("Another attempt replaces what came since offset " + jsonInt(j.To) + ".")
		return
	}
	s := what + jsonInt(j.To)
	if j.Thread != "" {
		s += " in thread " + j.Thread
	}
	t.writeNote(s + ".")
}

func (t *transcript) plan(raw json.RawMessage) {
	entries, _ := list(raw)
	if len(entries) == 0 {
		return
	}
	t.flush(true)
	t.string("\n")
	for _, one := range entries {
		m := object(one)
		box := "- [ ] "
		if str(m["status"]) == "completed" {
			box = "- [x] "
		}
		t.string(box, inline(str(m["content"])), "\n")
	}
}
