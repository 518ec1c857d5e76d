package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A Diff compares two conversations turn by turn, after the turns at the
// beginning that are the same. A turn is a question together with everything
// that follows from it. Two turns are the same if they have the same messages
// and calls; ids, times and offsets do not count.
type Diff struct {
	A      DiffSession `json:"a"`
	B      DiffSession `json:"b"`
	Shared int64       `json:"shared_offset"` // both sessions share the events before this offset; 0 if none
	Common int         `json:"common_turns"`  // number of equal turns at the beginning
	Same   bool        `json:"same"`          // whether there are no other turns
	Turns  []DiffTurn  `json:"turns"`         // the turns after the common ones
}

// A DiffSession is one side of a [Diff].
type DiffSession struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	Agent string `json:"agent,omitempty"`
	At    int64  `json:"at"` // events before this offset are compared
	Turns int    `json:"turns"`
}

// A DiffTurn is one turn of both sessions, paired by number. A side is nil if
// its session has fewer turns.
type DiffTurn struct {
	Turn    int          `json:"turn"` // from 1
	A       *DiffSide    `json:"a"`
	B       *DiffSide    `json:"b"`
	Same    bool         `json:"same"`
	Changes []DiffChange `json:"changes,omitempty"`
}

// A DiffSide is a turn of one session.
type DiffSide struct {
	Offset     int64      `json:"offset"` // the offset of its first event
	Thread     string     `json:"thread"`
	Invocation string     `json:"invocation,omitempty"`
	Messages   []DiffItem `json:"messages"`
	Tools      []DiffItem `json:"tools"`
	items      []DiffItem
}

// A DiffItem is a message or a tool call, reduced to what is compared.
type DiffItem struct {
	Offset    int64           `json:"offset"`
	Kind      string          `json:"kind"`           // "message" or "tool"
	Name      string          `json:"name"`           // the role, or the tool
	Text      string          `json:"text,omitempty"` // the text of a message, or the result of a tool
	Arguments string          `json:"arguments,omitempty"`
	Status    tapedeck.Status `json:"status"`

	DurationMS *int64 `json:"duration_ms,omitempty"` // the duration of a tool call; it is not compared
}

// A DiffChange is an item that only one side has, or that differs.
type DiffChange struct {
	Op        string     `json:"op"` // "added" (only in b), "removed" (only in a) or "changed"
	Kind      string     `json:"kind"`
	Name      string     `json:"name"`
	A         *int64     `json:"a_offset,omitempty"`
	B         *int64     `json:"b_offset,omitempty"`
	Text      []DiffLine `json:"text,omitempty"`      // the changed lines of the text
	Arguments []DiffLine `json:"arguments,omitempty"` // those of the arguments
	Status    []DiffLine `json:"status,omitempty"`    // those of the status
}

// A DiffLine is a line of a changed text.
type DiffLine struct {
	Op   string `json:"op"` // "-" only in a, "+" only in b, " " in both, "@" for lines in both that are left out
	Text string `json:"text"`
}

// Compare compares two conversations. shared is the number of events that both
// have by descent, 0 if neither is a fork of the other or of a common parent.
func Compare(a, b *Snapshot, shared int64) Diff {
	left, right := turnsOf(a), turnsOf(b)
	d := Diff{
		A:      DiffSession{a.Session.ID, a.Session.Title, a.Session.Agent, a.At, len(left)},
		B:      DiffSession{b.Session.ID, b.Session.Title, b.Session.Agent, b.At, len(right)},
		Shared: max(0, min(shared, a.At, b.At)), Turns: []DiffTurn{},
	}
	for d.Common < min(len(left), len(right)) && slices.EqualFunc(left[d.Common].items, right[d.Common].items, sameItem) {
		d.Common++
	}
	for i := d.Common; i < max(len(left), len(right)); i++ {
		d.Turns = append(d.Turns, diffTurn(i, left, right))
	}
	d.Same = len(d.Turns) == 0
	return d
}

func diffTurn(i int, left, right []*DiffSide) DiffTurn {
	t := DiffTurn{Turn: i + 1}
	var a, b []DiffItem
	if i < len(left) {
		t.A, a = left[i], left[i].items
	}
	if i < len(right) {
		t.B, b = right[i], right[i].items
	}
	t.Changes = diffItems(a, b)
	t.Same = len(t.Changes) == 0
	return t
}

// turnsOf splits a conversation into turns, in the order of their first items.
func turnsOf(s *Snapshot) []*DiffSide {
	var turns []*DiffSide
	open := map[string]*DiffSide{} // by thread
	for _, i := range diffable(s) {
		t := open[i.thread]
		if t == nil || !t.accepts(&i) {
			t = &DiffSide{Offset: i.Offset, Thread: i.thread, Messages: []DiffItem{}, Tools: []DiffItem{}}
			open[i.thread] = t
			turns = append(turns, t)
		}
		t.add(&i)
	}
	return turns
}

type threadItem struct {
	DiffItem
	thread, invocation string
}

// diffable returns messages and calls in the order in which they began.
func diffable(s *Snapshot) []threadItem {
	var all []threadItem
	for i := range s.Messages {
		m := &s.Messages[i]
		if m.Role == "tool" { // it repeats the result of its call
			continue
		}
		text := m.Text
		if m.Parts != nil {
			text += "\n" + canonicalJSON(m.Parts)
		}
		if m.Content != nil {
			text += canonicalJSON(m.Content)
		}
		all = append(all, threadItem{DiffItem{Offset: m.Offset, Kind: "message", Name: m.Role, Text: normalText(text), Status: m.Status}, m.Thread, m.Invocation})
	}
	for i := range s.Calls {
		k := &s.Calls[i]
		one := DiffItem{Offset: k.Offset, Kind: "tool", Name: k.Name, Arguments: canonicalJSON([]byte(k.Arguments)), Status: k.Status, DurationMS: k.DurationMS}
		if r := k.Result; r != nil {
			one.Text = normalText(r.output())
		}
		all = append(all, threadItem{one, k.Thread, k.Invocation})
	}
	slices.SortStableFunc(all, func(a, b threadItem) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
}

// output returns the output of a tool, and below it the error.
func (r *ToolResult) output() string {
	if r.Text == "" || r.Error == "" {
		return r.Text + r.Error
	}
	return r.Text + "\n" + r.Error
}

// accepts reports whether an item belongs to the turn. It does if it has the
// same invocation, if it is no question, or if it is the first question of a turn
// that has no invocation yet. So the run that continues an interrupted one is in
// the turn of that one: a fork that leaves in mid-turn has no turn more than its
// parent.
func (t *DiffSide) accepts(i *threadItem) bool {
	asks := i.Name == payload.RoleUser && i.Kind == "message"
	same := t.Invocation != "" && t.Invocation == i.invocation
	return !asks || same || t.Invocation == "" && !t.asked()
}

func (t *DiffSide) asked() bool {
	return slices.ContainsFunc(t.Messages, func(i DiffItem) bool { return i.Name == payload.RoleUser })
}

func (t *DiffSide) add(i *threadItem) {
	if t.Invocation == "" {
		t.Invocation = i.invocation
	}
	t.items = append(t.items, i.DiffItem)
	if i.Kind == "tool" {
		t.Tools = append(t.Tools, i.DiffItem)
	} else {
		t.Messages = append(t.Messages, i.DiffItem)
	}
}

func sameItem(a, b DiffItem) bool {
	a.Offset, b.Offset = 0, 0
	a.DurationMS, b.DurationMS = nil, nil
	return a == b
}

// normalText removes differences that nobody sees: CRLF line ends, and space at
// the end.
func normalText(s string) string {
	return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), " \t\n")
}

// canonicalJSON returns JSON with sorted members and indentation. Other text
// stays unchanged.
func canonicalJSON(raw []byte) string {
	var v any
	if nesting(raw) > maxDepth {
		return string(raw)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return string(raw)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// diffItems compares the items of a turn. Between equal items, items of the
// same kind and name are paired.
func diffItems(a, b []DiffItem) (changes []DiffChange) {
	for _, h := range hunks(a, b, sameItem) {
		left, right := h.a, h.b
		for len(left) > 0 || len(right) > 0 {
			switch {
			case len(right) == 0, len(left) > 0 && !pairs(left[0], right[0]) && slices.ContainsFunc(left[1:], func(i DiffItem) bool { return pairs(i, right[0]) }):
				changes = append(changes, DiffChange{Op: "removed", Kind: left[0].Kind, Name: left[0].Name, A: &left[0].Offset})
				left = left[1:]
			case len(left) == 0, !pairs(left[0], right[0]):
				changes = append(changes, DiffChange{Op: "added", Kind: right[0].Kind, Name: right[0].Name, B: &right[0].Offset})
				right = right[1:]
			default:
				changes = append(changes, changed(&left[0], &right[0]))
				left, right = left[1:], right[1:]
			}
		}
	}
	return changes
}

func pairs(a, b DiffItem) bool { return a.Kind == b.Kind && a.Name == b.Name }

func changed(a, b *DiffItem) DiffChange {
	return DiffChange{
		Op: "changed", Kind: a.Kind, Name: a.Name, A: &a.Offset, B: &b.Offset,
		Text: diffText(a.Text, b.Text), Arguments: diffText(a.Arguments, b.Arguments), Status: diffText(string(a.Status), string(b.Status)),
	}
}
