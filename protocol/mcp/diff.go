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

type diffInput struct {
	A    string `json:"a" jsonschema:"the id of a session"`
	B    string `json:"b" jsonschema:"the id of the session to compare it with; it may be the same one"`
	AtA  *int64 `json:"at_a,omitempty" jsonschema:"a as it was before this offset; without it, as it is now"`
	AtB  *int64 `json:"at_b,omitempty" jsonschema:"b as it was before this offset; without it, as it is now"`
	From int    `json:"from_turn,omitempty" jsonschema:"the first turn: the value of next_turn in the previous page"`
	Size int    `json:"limit,omitempty" jsonschema:"the largest number of turns"`
	Text int    `json:"text_limit,omitempty" jsonschema:"bytes of each line and text; a longer one is cut"`
}

// A diff is a page of a [view.Diff]. A side has only the items that the other one lacks.
type diff struct {
	view.Diff
	Next int  `json:"next_turn,omitempty"`
	Cut  bool `json:"cut,omitempty"`
}

func (s *server) addDiffTool() {
	answer := component("Diff")
	with(answer, "next_turn", "from_turn of the next page; absent on the last page")
	with(answer, "cut", "")
	answer.Properties["cut"] = &schema{Type: "boolean", Description: "something is missing, because it was longer than text_limit or the page"}
	addTool(s, tool{
		name: "diff_sessions", title: "Compare two sessions",
		description: "Compare the conversations of two sessions, or of one session at two offsets: how many turns at the beginning are the same, and how the others differ. " + dataNotice,
		request: requestSchema[diffInput]("", map[string]field{
			"at_a": offset, "at_b": offset, "from_turn": number(1, 1, 1<<31), "limit": number(defaultTurns, 1, maxTurns), "text_limit": number(defaultText, 100, maxText),
		}),
		answer: answer,
	}, s.diff)
}

func (s *server) diff(ctx context.Context, _ *sdk.CallToolRequest, in diffInput) (answer, error) {
	if err := cmp.Or(tapedeck.CheckID("session a", in.A), tapedeck.CheckID("session b", in.B)); err != nil {
		return answer{}, err
	}
	whole, err := s.Reader.Diff(ctx, in.A, in.B, orHead(in.AtA), orHead(in.AtB))
	if err != nil {
		return answer{}, err
	}
	d := &diff{Diff: whole}
	if err := d.fill(whole.Turns, &in); err != nil {
		return answer{}, err
	}
	return answer{d.text(), d}, nil
}

// fill takes as many turns as fit.
func (d *diff) fill(turns []view.DiffTurn, in *diffInput) error {
	d.Turns = []view.DiffTurn{}
	size := 0
	for i := range turns {
		t := &turns[i]
		if t.Turn < in.From {
			continue
		}
		cut := limitTurn(t, in.Text, pageBytes)
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if size += len(b); len(d.Turns) == in.Size || size > pageBytes && len(d.Turns) > 0 {
			d.Next = t.Turn
			return nil
		}
		d.Turns, d.Cut = append(d.Turns, *t), d.Cut || cut
	}
	return nil
}

// limitTurn leaves out of a turn the items that both sides have, cuts its texts, and leaves
// out the changes above a number of bytes.
func limitTurn(t *view.DiffTurn, text, budget int) (cut bool) {
	shorten := func(s *string) {
		short, was := cutText(*s, min(text, max(budget, 0)))
		budget -= len(short)
		*s, cut = short, cut || was
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		if budget <= 0 {
			t.Changes, cut = t.Changes[:i], true
			break
		}
		budget -= 250 // its members, and those of its item
		shorten(&c.Name)
		for _, lines := range []*[]view.DiffLine{&c.Text, &c.Arguments, &c.Status} {
			for k := range *lines {
				if budget <= 0 {
					*lines, cut = (*lines)[:k], true
					break
				}
				budget -= 20 // its members
				shorten(&(*lines)[k].Text)
			}
		}
	}
	limitSide(t.A, t.Changes, "removed", shorten)
	limitSide(t.B, t.Changes, "added", shorten)
	return cut
}

// limitSide leaves in a side only the items that are changes of their own.
func limitSide(s *view.DiffSide, changes []view.DiffChange, op string, shorten func(*string)) {
	if s == nil {
		return
	}
	all := sideItems{s.Messages, s.Tools}
	s.Messages, s.Tools = []view.DiffItem{}, []view.DiffItem{}
	for i := range changes {
		if changes[i].Op != op {
			continue
		}
		it := all.take(&changes[i])
		if it == nil {
			continue
		}
		shorten(&it.Name)
		shorten(&it.Text)
		shorten(&it.Arguments)
		if changes[i].Kind == "tool" {
			s.Tools = append(s.Tools, *it)
		} else {
			s.Messages = append(s.Messages, *it)
		}
	}
}

// sideItems are the items of a side.
type sideItems struct{ messages, tools []view.DiffItem }

// take returns the item of a change, and removes it: several items may have one offset.
func (i *sideItems) take(c *view.DiffChange) *view.DiffItem {
	list, offset := &i.messages, c.A
	if c.Kind == "tool" {
		list = &i.tools
	}
	if c.Op == "added" {
		offset = c.B
	}
	k := slices.IndexFunc(*list, func(it view.DiffItem) bool { return it.Offset == *offset })
	if k < 0 {
		return nil
	}
	found := (*list)[k]
	*list = slices.Delete(slices.Clone(*list), k, k+1)
	return &found
}

func (d *diff) text() string {
	var b strings.Builder
	for i, s := range []view.DiffSession{d.A, d.B} {
		fmt.Fprintf(&b, "%c is %s before offset %d: %d turns.\n", 'a'+i, s.ID, s.At, s.Turns)
	}
	if d.Same {
		b.WriteString("The conversations are the same.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "The first %d turns are the same. Both share the events before offset %d. In lines that begin with \"| \", - is only in a, + only in b.\n", d.Common, d.Shared)
	for i := range d.Turns {
		writeTurn(&b, &d.Turns[i])
	}
	if d.Next > 0 {
		fmt.Fprintf(&b, "There are more: use from_turn %d.\n", d.Next)
	}
	return b.String()
}

func writeTurn(b *strings.Builder, t *view.DiffTurn) {
	fmt.Fprintf(b, "turn %d", t.Turn)
	switch {
	case t.Same:
		b.WriteString(" is the same")
	case t.A == nil:
		b.WriteString(" is only in b")
	case t.B == nil:
		b.WriteString(" is only in a")
	}
	b.WriteString("\n")
	var a, other sideItems
	if t.A != nil {
		a = sideItems{t.A.Messages, t.A.Tools}
	}
	if t.B != nil {
		other = sideItems{t.B.Messages, t.B.Tools}
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		fmt.Fprintf(b, "%s %s %s\n", c.Op, c.Kind, brief(c.Name))
		switch c.Op {
		case "added":
			quoteItem(b, "+ ", other.take(c))
		case "removed":
			quoteItem(b, "- ", a.take(c))
		}
		for _, lines := range [][]view.DiffLine{c.Text, c.Arguments, c.Status} {
			for _, l := range lines {
				quote(b, l.Op+" "+l.Text)
			}
		}
	}
}

func quoteItem(b *strings.Builder, op string, i *view.DiffItem) {
	if i != nil {
		quote(b, op+strings.TrimSpace(i.Arguments+" "+i.Text))
	}
}
