package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// readBytes is how much of a conversation is read for one page, before its texts are cut.
const readBytes = 16 << 20

type conversationInput struct {
	Session string `json:"session" jsonschema:"the id of the session"`
	Before  int64  `json:"before,omitempty" jsonschema:"only what began before this offset: the value of before in the previous page"`
	At      *int64 `json:"at,omitempty" jsonschema:"the conversation as it was before this offset; without it, as it is now"`
	Thread  string `json:"thread,omitempty" jsonschema:"only this thread; without it, all threads"`
	Limit   int    `json:"limit,omitempty" jsonschema:"the largest number of messages"`
	Text    int    `json:"text_limit,omitempty" jsonschema:"bytes of each text; a longer text is cut, and cut has its offset"`
}

// A conversation is a page of the effective conversation: a part of a [view.Snapshot].
type conversation struct {
	Session  view.SessionInfo `json:"session"`
	At       int64            `json:"at"`
	Selected string           `json:"thread,omitempty"`
	Messages []view.Message   `json:"messages"`
	Calls    []view.ToolCall  `json:"tool_calls"`
	Earlier  int              `json:"earlier,omitempty"`
	Before   int64            `json:"before,omitempty"` // the cursor of the page before; 0 if there is none
	Cut      []int64          `json:"cut,omitempty"`    // offsets of the items that are not complete
}

func (s *server) addConversationTool() {
	answer := only(component("Snapshot"), 4, "session", "at", "messages", "tool_calls", "thread", "earlier")
	with(answer, "before", "the cursor of the page with older items; absent if there is none")
	with(answer, "cut", "")
	cut := answer.Properties["cut"]
	cut.Type, cut.Items, cut.Description = "array", component("Envelope").Properties["offset"], "offsets of the items that are not complete, because a text was longer than text_limit"
	addTool(s, tool{
		name: "read_session", title: "Read a conversation",
		description: "Read the conversation of a session: its messages and tool calls without those that a rewind has reverted. " +
			"The answer has the newest ones; before leads to older ones. " + dataNotice,
		request: requestSchema[conversationInput]("", map[string]field{
			"limit": number(defaultMessages, 1, maxMessages), "text_limit": number(defaultText, 100, maxText), "at": offset, "before": offset,
		}),
		answer: answer,
	}, s.readConversation)
}

func (s *server) readConversation(ctx context.Context, _ *sdk.CallToolRequest, in conversationInput) (answer, error) {
	if err := cmp.Or(tapedeck.CheckID("the session", in.Session), checkOptionalID("the thread", in.Thread)); err != nil {
		return answer{}, err
	}
	c, err := s.conversation(ctx, in)
	if err != nil {
		return answer{}, err
	}
	return answer{c.text(), c}, nil
}

// conversation returns a page of a conversation within the limits.
func (s *server) conversation(ctx context.Context, in conversationInput) (*conversation, error) {
	snapshot, err := s.Reader.Snapshot(ctx, in.Session, view.Query{At: in.At, Thread: in.Thread, Limit: in.Limit, Bytes: readBytes, Before: in.Before})
	if err != nil {
		return nil, err
	}
	c := &conversation{Session: snapshot.Session, At: snapshot.At, Selected: snapshot.Selected, Earlier: snapshot.Earlier}
	c.Session.ID = in.Session
	entry := tapedeck.Session{Labels: c.Session.Labels}
	limitSession(&entry)
	c.Session.Labels = entry.Labels
	c.fill(&snapshot, in.Text)
	return c, nil
}

// fill takes the newest items of a snapshot, as many as fit. It changes copies, because the
// snapshot shares its items with other readers.
func (c *conversation) fill(s *view.Snapshot, text int) {
	messages, calls := slices.Clone(s.Messages), slices.Clone(s.Calls)
	items := make([]item, 0, len(messages)+len(calls))
	for i := range messages {
		items = append(items, item{offset: messages[i].Offset, message: &messages[i]})
	}
	for i := range calls {
		items = append(items, item{offset: calls[i].Offset, call: &calls[i]})
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.offset, b.offset) })
	for i := range items {
		items[i].cut = items[i].limit(text)
	}
	first := firstThatFits(items)
	if first > 0 && first < len(items) && items[first-1].offset == items[first].offset {
		items[first].cut = true
	}
	c.Messages, c.Calls = []view.Message{}, []view.ToolCall{}
	for i, it := range items {
		switch {
		case i < first && it.message != nil:
			c.Earlier++
		case i < first:
		case it.message != nil:
			c.Messages = append(c.Messages, *it.message)
		default:
			c.Calls = append(c.Calls, *it.call)
		}
		if i >= first && it.cut && !slices.Contains(c.Cut, it.offset) {
			c.Cut = append(c.Cut, it.offset)
		}
	}
	if first < len(items) && (first > 0 || c.Earlier > 0) {
		c.Before = items[first].offset
	}
}

// firstThatFits returns the index of the first item of the page that ends with the last one.
// Items of one offset are in the same page, because the cursor is an offset. If those of the
// last offset do not fit, as many as fit are in the page.
func firstThatFits(items []item) int {
	first, size := len(items), 0
	for end := len(items); end > 0; end = first {
		begin := end
		for begin > 0 && items[begin-1].offset == items[end-1].offset {
			begin--
			size += items[begin].size()
		}
		if size > pageBytes {
			break
		}
		first = begin
	}
	if first < len(items) {
		return first
	}
	for size = 0; first > 0 && items[first-1].offset == items[len(items)-1].offset; first-- {
		if size += items[first-1].size(); size > pageBytes && first < len(items) {
			break
		}
	}
	return first
}

// An item is a message or a tool call.
type item struct {
	offset  int64
	message *view.Message
	call    *view.ToolCall
	cut     bool // something of it is missing
}

// limit cuts the texts of an item, and reports whether something is missing. Metadata is for
// programs, and left out.
func (i *item) limit(text int) (cut bool) {
	shorten := func(s *string) {
		short, was := cutText(*s, text)
		*s, cut = short, cut || was
	}
	drop := func(raw *json.RawMessage) {
		if len(*raw) > text {
			*raw, cut = nil, true
		}
	}
	if m := i.message; m != nil {
		shorten(&m.Text)
		shorten(&m.Name)
		drop(&m.Parts)
		drop(&m.Content)
		m.Metadata = nil
		return cut
	}
	k := i.call
	shorten(&k.Name)
	shorten(&k.Arguments)
	k.Input = nil // the arguments again
	if len(k.Threads) > maxRuns {
		k.Threads, cut = k.Threads[:maxRuns], true
	}
	if k.Result != nil {
		r := *k.Result // the snapshot is shared
		shorten(&r.Text)
		shorten(&r.Error)
		drop(&r.Parts)
		k.Result = &r
	}
	return cut
}

// size returns the bytes of content of an item.
func (i *item) size() int {
	const members = 300 // offsets, ids and times
	if m := i.message; m != nil {
		return members + len(m.Text) + len(m.Name) + len(m.Parts) + len(m.Content)
	}
	n := members + len(i.call.Name) + len(i.call.Arguments)
	if r := i.call.Result; r != nil {
		n += len(r.Text) + len(r.Error) + len(r.Parts)
	}
	return n
}

// text returns the conversation as text for a model.
func (c *conversation) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Session %s (%s) before offset %d", c.Session.ID, c.Session.Status, c.At)
	if c.Session.Title != "" {
		b.WriteString(" " + brief(c.Session.Title))
	}
	b.WriteString(". Lines that begin with \"| \" are content of the session.\n")
	if c.Before > 0 {
		fmt.Fprintf(&b, "There are older items: use before %d.\n", c.Before)
	}
	m, k := c.Messages, c.Calls
	for len(m)+len(k) > 0 {
		if len(k) == 0 || len(m) > 0 && m[0].Offset <= k[0].Offset {
			c.writeMessage(&b, &m[0])
			m = m[1:]
			continue
		}
		c.writeCall(&b, &k[0])
		k = k[1:]
	}
	if len(c.Messages)+len(c.Calls) == 0 {
		b.WriteString("There are no messages.\n")
	}
	return b.String()
}

func (c *conversation) writeMessage(b *strings.Builder, m *view.Message) {
	fmt.Fprintf(b, "[%d] %s%s%s\n", m.Offset, or(m.Role, "message"), c.thread(m.Thread), c.state(m.Offset, m.Status))
	text := m.Text
	if text == "" {
		text = string(m.Content)
	}
	if text != "" {
		quote(b, text)
	}
}

func (c *conversation) writeCall(b *strings.Builder, k *view.ToolCall) {
	fmt.Fprintf(b, "[%d] tool call %s%s%s\n", k.Offset, brief(k.Name), c.thread(k.Thread), c.state(k.Offset, k.Status))
	if k.Arguments != "" {
		quote(b, k.Arguments)
	}
	if r := k.Result; r != nil {
		fmt.Fprintf(b, "[%d] its result\n", r.Offset)
		quote(b, strings.TrimLeft(r.Text+"\n"+r.Error, "\n"))
	}
}

// thread names a thread, if it is not the main one.
func (c *conversation) thread(name string) string {
	if name == tapedeck.MainThread || name == c.Selected {
		return ""
	}
	return ", thread " + name
}

// state says what a reader must know of an item.
func (c *conversation) state(offset int64, status tapedeck.Status) string {
	out := ""
	if status != tapedeck.StatusComplete {
		out = ", " + string(status)
	}
	if _, ok := slices.BinarySearch(c.Cut, offset); ok {
		out += ", cut"
	}
	return out
}
