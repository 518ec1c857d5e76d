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

// A Diff is what two conversations have in common at the beginning, and how they
// go on from there, turn by turn. A turn is what somebody asks with all that comes
// of it. Two turns are the same if the same is said and done in them; ids, times
// and offsets do not count.
type Diff struct {
	A      DiffSession `json:"a"`
	B      DiffSession `json:"b"`
	Shared int64       `json:"shared_offset"` // events before this offset are the very same in both; 0 for none
	Common int         `json:"common_turns"`  // turns at the beginning that are the same
	Same   bool        `json:"same"`          // and there are no others
	Turns  []DiffTurn  `json:"turns"`         // those after them
}

// A DiffSession is one side of a [Diff].
type DiffSession struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	At    int64  `json:"at"` // the events before this offset are compared
	Turns int    `json:"turns"`
}

// A DiffTurn is one turn of both, the first, the second and so on. A side is nil
// if it has no more.
type DiffTurn struct {
	Turn    int          `json:"turn"` // from 1
	A       *DiffSide    `json:"a"`
	B       *DiffSide    `json:"b"`
	Same    bool         `json:"same"`
	Changes []DiffChange `json:"changes,omitempty"`
}

// A DiffSide is a turn of one session.
type DiffSide struct {
	Offset     int64      `json:"offset"` // of its first event
	Thread     string     `json:"thread"`
	Invocation string     `json:"invocation,omitempty"`
	Messages   []DiffItem `json:"messages"`
	Tools      []DiffItem `json:"tools"`
	items      []DiffItem
}

// A DiffItem is a message or a tool call, as far as it counts.
type DiffItem struct {
	Offset    int64           `json:"offset"`
	Kind      string          `json:"kind"`           // "message" or "tool"
	Name      string          `json:"name"`           // the role, or the tool
	Text      string          `json:"text,omitempty"` // of a message; of a tool, its result
	Arguments string          `json:"arguments,omitempty"`
	Status    tapedeck.Status `json:"status"`

	DurationMS *int64 `json:"duration_ms,omitempty"` // of a tool call; it does not count
}

// A DiffChange says that an item is only in one of the two, or not the same.
type DiffChange struct {
	Op        string     `json:"op"` // "added" (only in b), "removed" (only in a) or "changed"
	Kind      string     `json:"kind"`
	Name      string     `json:"name"`
	A         *int64     `json:"a_offset,omitempty"`
	B         *int64     `json:"b_offset,omitempty"`
	Text      []DiffLine `json:"text,omitempty"` // of a change; likewise
	Arguments []DiffLine `json:"arguments,omitempty"`
	Status    []DiffLine `json:"status,omitempty"`
}

// A DiffLine is a line of a text that has changed.
type DiffLine struct {
	Op   string `json:"op"` // "-" only in a, "+" only in b, " " in both, "@" for lines in both that are left out
	Text string `json:"text"`
}

// Compare compares two conversations. shared says how many events they have by
// descent, 0 if neither is a fork of the other or of the same session.
func Compare(a, b *Snapshot, shared int64) Diff {
	left, right := turnsOf(a), turnsOf(b)
	d := Diff{
		A:      DiffSession{a.Session.ID, a.Session.Title, a.At, len(left)},
		B:      DiffSession{b.Session.ID, b.Session.Title, b.At, len(right)},
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

// turnsOf divides a conversation into turns, in the order of their first items.
func turnsOf(s *Snapshot) []*DiffSide {
	var turns []*DiffSide
	open := map[string]*DiffSide{} // by thread
	for _, i := range diffable(s) {
		t := open[i.thread]
		if t == nil || !t.takes(&i) {
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
		if m.Role == "tool" { // the call has it
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
			one.Text = normalText(r.words())
		}
		all = append(all, threadItem{one, k.Thread, k.Invocation})
	}
	slices.SortStableFunc(all, func(a, b threadItem) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
}

// words is what a tool put out, and below it why it failed.
func (r *ToolResult) words() string {
	if r.Text == "" || r.Error == "" {
		return r.Text + r.Error
	}
	return r.Text + "\n" + r.Error
}

// takes reports whether an item belongs to the turn: it is of the same
// invocation, or it is what comes of words that are of none.
func (t *DiffSide) takes(i *threadItem) bool {
	asks := i.Name == payload.RoleUser && i.Kind == "message"
	switch {
	case t.Invocation != "" && i.invocation != "":
		return t.Invocation == i.invocation
	case t.Invocation == "":
		return !asks || !t.asked()
	}
	return !asks
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

// normalText leaves out what nobody sees.
func normalText(s string) string {
	return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), " \t\n")
}

// canonicalJSON returns JSON with its members in order; what is none stays as it
// is.
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

// diffItems compares the items of a turn. Those between two that are the same are
// paired if they are of one kind and name.
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
