package aisdk

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A chain is the runs of one message of an assistant, the first one first. The id of the
// message is that of the first run. A message has several runs if its agent, which runs
// elsewhere, ended a run to ask and began another one with the answer.
type chain []*view.Run

func (c chain) message() string { return c[0].Invocation }

func (c chain) last() *view.Run { return c[len(c)-1] }

// ids returns the ids of the runs.
func (c chain) ids() []string {
	ids := make([]string, len(c))
	for i, r := range c {
		ids[i] = r.Invocation
	}
	return ids
}

// chains are the runs of a conversation by message.
type chains struct {
	of   map[string]chain // by the id of any of its runs
	last chain            // nil if there is no run
}

// at returns the chain of a run, and the chain of the run alone if the conversation lacks it.
func (c *chains) at(r *view.Run) chain {
	if of, ok := c.of[r.Invocation]; ok {
		return of
	}
	return chain{r}
}

// message returns the id of the message of a run; "" for no run.
func (c *chains) message(run string) string {
	if of, ok := c.of[run]; ok {
		return of.message()
	}
	return run
}

// chainsOf returns the chains of the main thread. A run continues the message of the run that
// it names as its parent, unless a user has spoken between them.
func chainsOf(now *view.Snapshot) chains {
	var spoken []int64 // the offsets of what users said
	for i := range now.Messages {
		if now.Messages[i].Role == payload.RoleUser {
			spoken = append(spoken, now.Messages[i].Offset)
		}
	}
	c := chains{of: map[string]chain{}}
	for i := range now.Runs {
		r := &now.Runs[i]
		if r.Thread != tapedeck.MainThread {
			continue
		}
		list := chain{r}
		if before := c.of[r.Parent]; before != nil && before.last().Invocation == r.Parent && !spokenBetween(spoken, before.last(), r) {
			list = append(slices.Clip(before), r)
		}
		for _, of := range list {
			c.of[of.Invocation] = list
		}
		c.last = list
	}
	return c
}

// spokenBetween reports whether a user spoke after a run had ended and before the next one began.
func spokenBetween(spoken []int64, before, r *view.Run) bool {
	if before.EndOffset == nil {
		return true
	}
	i, _ := slices.BinarySearch(spoken, *before.EndOffset)
	return i < len(spoken) && spoken[i] < r.Offset
}
