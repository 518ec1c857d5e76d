package indexer

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/search"
)

// maxText is how many bytes of a document are indexed; the rest is left out.
const maxText = 256 << 10

// A fold creates documents from the events of one session, in order. A text that
// comes in several events becomes a document when it ends.
type fold struct {
	docs []search.Document
	open map[string]*part // the texts that have not ended, by kind and id

	receipt int64 // offset of the newest receipt for an erasure; 0 for none
}

// A part is a document whose text has not ended.
type part struct {
	search.Document
	text strings.Builder // the pieces; see [payload.Whole]
}

func (p *part) add(s string) {
	if room := maxText - p.text.Len(); room > 0 {
		p.text.WriteString(s[:min(len(s), room)])
	}
}

// first returns the offset of the oldest part, or next if there is none.
func (f *fold) first(next int64) int64 {
	for _, p := range f.open {
		next = min(next, p.Offset)
	}
	return next
}

// add folds an event. It ignores events that it does not understand.
func (f *fold) add(e *tapedeck.Event) {
	if e.Type == tapedeck.SessionRedacted {
		f.receipt = e.Offset
	}
	p, err := payload.Decode(*e)
	if err != nil {
		return
	}
	switch d := p.(type) {
	case payload.MessageAdded:
		f.message(e, &d.Message)
	case payload.TextMessageStart:
		f.begin(e, "text "+d.MessageID, search.DocMessage, cmp.Or(d.Role, payload.RoleAssistant))
	case payload.TextMessageContent:
		f.extend("text "+d.MessageID, d.Delta)
	case payload.TextMessageEnd:
		f.end("text " + d.MessageID)
	case payload.ReasoningMessageStart:
		f.begin(e, "reasoning "+d.MessageID, search.DocMessage, payload.RoleReasoning)
	case payload.ReasoningMessageContent:
		f.extend("reasoning "+d.MessageID, d.Delta)
	case payload.ReasoningMessageEnd:
		f.end("reasoning " + d.MessageID)
	case payload.ToolCallStart:
		f.begin(e, "call "+d.ToolCallID, search.DocTool, "").add(called(d.ToolCallName, ""))
	case payload.ToolCallArgs:
		f.extend("call "+d.ToolCallID, d.Delta)
	case payload.ToolCallEnd:
		f.end("call " + d.ToolCallID)
	case payload.ToolCallResult:
		m := payload.Message{Content: d.Content}
		f.append(document(e, search.DocTool, payload.RoleTool), answered(&m))
	case payload.RunFinished, payload.RunError:
		f.endRun(e.Invocation)
	default:
		f.title(e)
	}
}

func document(e *tapedeck.Event, kind, role string) search.Document {
	return search.Document{
		Offset: e.Offset, Kind: kind, Role: role, Thread: e.ThreadName(), Invocation: e.Invocation, Time: e.Time,
	}
}

func (f *fold) append(d search.Document, text string) {
	text = strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxText)], ""))
	if text == "" && d.Kind != search.DocTitle {
		return
	}
	d.Text = text
	f.docs = append(f.docs, d)
}

func (f *fold) begin(e *tapedeck.Event, id, kind, role string) *part {
	if f.open == nil {
		f.open = map[string]*part{}
	}
	f.end(id) // a second start with the same id begins another document
	p := &part{Document: document(e, kind, role)}
	f.open[id] = p
	return p
}

func (f *fold) extend(id string, delta payload.Piece) {
	if p := f.open[id]; p != nil {
		p.add(string(delta))
	}
}

func (f *fold) end(id string) {
	if p := f.open[id]; p != nil {
		delete(f.open, id)
		text := payload.Whole(p.text.String())
		if p.Kind == search.DocTool {
			text = read(text)
		}
		f.append(p.Document, text)
	}
}

// endRun ends the parts that a run has left open.
func (f *fold) endRun(invocation string) {
	for id, p := range f.open {
		if p.Invocation == invocation {
			f.end(id)
		}
	}
}

// endAll ends all parts, although their ends were not read.
func (f *fold) endAll() {
	for id := range f.open {
		f.end(id)
	}
}

func (f *fold) message(e *tapedeck.Event, m *payload.Message) {
	if m.Role == payload.RoleTool {
		f.append(document(e, search.DocTool, m.Role), answered(m))
	} else {
		f.append(document(e, search.DocMessage, m.Role), m.TextWith("\n"))
	}
	for _, c := range m.ToolCalls {
		f.append(document(e, search.DocTool, ""), called(c.Function.Name, c.Function.Arguments))
	}
}

func called(name, arguments string) string { return name + " " + read(arguments) }

// answered returns the text of the answer of a tool, which is often JSON.
func answered(m *payload.Message) string {
	text := m.TextWith("\n")
	if json.Valid([]byte(text)) {
		return read(text)
	}
	return text
}

// title adds the title that an event sets. An empty title removes the older ones.
func (f *fold) title(e *tapedeck.Event) {
	if e.Channel != tapedeck.ChannelSession {
		return
	}
	const none = "\x00" // no valid title
	s := tapedeck.Session{Title: none}
	s.Apply(e)
	if s.Title != none {
		f.append(document(e, search.DocTitle, ""), s.Title)
	}
}

// documents returns the complete documents, by offset.
func (f *fold) documents() []search.Document {
	slices.SortStableFunc(f.docs, func(a, b search.Document) int { return cmp.Compare(a.Offset, b.Offset) })
	return f.docs
}
