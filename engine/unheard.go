package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/proposal"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// An agent that resumes a conversation of its own knows only what it stored itself.
// When a run stops early, some agents keep half of an answer, some keep nothing after
// the last tool call, and the engine cannot ask. So the context of the next run
// repeats what people have seen since then, once and briefly.

// An unheard has the end of a run, which the agent may not know.
type unheard struct {
	text  string
	done  []string // the last calls with a result, a line each
	calls []string // calls without a result, a line each
	more  int      // calls that are left out
	lost  int      // bytes that are left out
}

// Bounds of an unheard, in bytes if not stated otherwise.
const (
	maxHeardHead = 4 << 10
	maxHeardTail = 12 << 10 // the agent continues at the end
	maxHeardArgs = 2 << 10
	maxHeard     = 20 // calls
	maxDone      = 3  // calls with a result: some agents store them only later
)

func (u *unheard) empty() bool { return u.text == "" && len(u.calls) == 0 && len(u.done) == 0 }

// unheard returns the end of a run, which the agent may not know. If the run stopped
// before it had any output, that of the run before it counts.
func (e *Engine) unheard(ctx context.Context, s *tapedeck.Session, cut *view.Run) (unheard, error) {
	now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: cut.Thread})
	if err != nil {
		return unheard{}, err
	}
	last := slices.IndexFunc(now.Runs, func(r view.Run) bool { return r.Invocation == cut.Invocation })
	for ; last >= 0 && now.Runs[last].Status != tapedeck.StatusComplete; last-- {
		if u := e.unheardOf(ctx, s.ID, &now, now.Runs[last].Invocation); !u.empty() {
			return u, nil
		}
	}
	return unheard{}, nil
}

// unheardOf returns the text of an invocation since its last tool result, its last calls
// with a result, and its calls without one.
func (e *Engine) unheardOf(ctx context.Context, session string, now *view.Snapshot, invocation string) (u unheard) {
	answered := int64(-1)
	var done []*view.ToolCall
	for i := range now.Calls {
		if k := &now.Calls[i]; k.Invocation == invocation && k.Result != nil {
			answered, done = max(answered, k.Result.Offset), append(done, k)
		}
	}
	var said []string
	for i := range now.Messages {
		m := &now.Messages[i]
		if m.Invocation == invocation && m.Role == payload.RoleAssistant && m.Offset > answered && strings.TrimSpace(m.Text) != "" {
			said = append(said, strings.TrimSpace(m.Text))
		}
	}
	u.setText(strings.Join(said, "\n\n"))
	for _, k := range done[max(0, len(done)-maxDone):] {
		u.addDone(k.Name+" "+e.argumentsOf(ctx, session, k, questionAbout(now, k.ID)), k.Result.Text)
	}
	for i := range now.Calls {
		if k := &now.Calls[i]; k.Invocation == invocation && k.Result == nil {
			asked := questionAbout(now, k.ID)
			u.addCall(k.Name+" "+e.argumentsOf(ctx, session, k, asked), asked != nil && asked.Status != view.PermissionAnswered)
		}
	}
	return u
}

// questionAbout returns the question to people about a call; nil if there is none.
func questionAbout(now *view.Snapshot, call string) *view.Permission {
	i := slices.IndexFunc(now.Permissions, func(p view.Permission) bool { return p.ToolCallID == call })
	if i < 0 {
		return nil
	}
	return &now.Permissions[i]
}

// argumentsOf returns the arguments of a call, or what else the log says of it.
func (e *Engine) argumentsOf(ctx context.Context, session string, k *view.ToolCall, asked *view.Permission) string {
	var action *tapedeck.PermissionAction
	if asked != nil && json.Unmarshal(asked.Action, &action) != nil {
		action = nil
	}
	if told := proposal.Arguments(k.Arguments, action, ""); told != "" && told != "{}" {
		return told
	}
	for ev, err := range tapedeck.Events(ctx, e.store, session, k.Offset) {
		if d, bad := payload.DecodeAs[payload.ToolCallStart](ev); err == nil && bad == nil {
			return proposal.Arguments(k.Arguments, nil, proposal.Title(d.Metadata))
		}
		break
	}
	return k.Arguments
}

// setText keeps the beginning and the end of a text.
func (u *unheard) setText(text string) {
	text = strings.ToValidUTF8(text, "")
	if len(text) <= maxHeardHead+maxHeardTail {
		u.text = text
		return
	}
	head, tail := maxHeardHead, len(text)-maxHeardTail
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for !utf8.RuneStart(text[tail]) {
		tail++
	}
	u.lost += tail - head
	u.text = fmt.Sprintf("%s\n[… %d bytes are left out here …]\n%s", text[:head], tail-head, text[tail:])
}

// addDone adds a call with a result. The agent nearly always has it, so what is cut is not
// counted as lost.
func (u *unheard) addDone(call, result string) {
	line := flat(call)
	if len(line) > maxHeardArgs {
		line = strings.ToValidUTF8(line[:maxHeardArgs], "") + " …"
	}
	u.done = append(u.done, line+" → "+oneLine(result))
}

func (u *unheard) addCall(call string, unanswered bool) {
	line, what := flat(call), "it has no result, and may have taken effect"
	if unanswered {
		what = "people were asked and have not answered, so it was not done"
	}
	switch over := len(line) - maxHeardArgs; {
	case len(u.calls) == maxHeard:
		u.more, u.lost = u.more+1, u.lost+len(line)
		return
	case over > 0:
		u.lost += over
		line = strings.ToValidUTF8(line[:maxHeardArgs], "") + " …"
	}
	u.calls = append(u.calls, line+": "+what)
}

// newlines replaces every character that a model may read as a newline.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n")

// String returns u as a part of a resume context. Each line has a prefix, so that no
// line can end the context.
func (u *unheard) String() string {
	var b strings.Builder
	if u.text != "" {
		b.WriteString("\nThe last that the user has seen of your answer (you may have some of it already):\n")
		for line := range strings.Lines(newlines.Replace(u.text)) {
			b.WriteString("> " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	if len(u.done) > 0 {
		b.WriteString("\nYour last tool calls with a result (you may have them already):\n")
		for _, line := range u.done {
			b.WriteString("  - " + line + "\n")
		}
	}
	if len(u.calls) == 0 {
		return b.String()
	}
	b.WriteString("\nYour tool calls without a result:\n")
	for _, line := range u.calls {
		b.WriteString("  - " + line + "\n")
	}
	if u.more > 0 {
		fmt.Fprintf(&b, "  … and %d more\n", u.more)
	}
	return b.String()
}
