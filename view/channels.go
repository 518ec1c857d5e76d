package view

import (
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// Types that events of the six channels get if no type of the catalogue says what they say.
const (
	TypeToolStatus   = "tool.status"    // a tool call whose status changes
	TypeAgentState   = "agent.state"    // an agent's own state
	WorkflowTaskStep = "workflow.task." // begins the type of a step of a task
)

// InChannels reports whether e is an event in the form of the six channels
// (docs/protocol/channels.md): each event of the log is one there, or none. The answer is
// the same after e is erased, because it numbers the events of that form.
func InChannels(e *tapedeck.Event) bool {
	switch e.Type {
	case tapedeck.TextMessageContent, tapedeck.ToolCallStart, tapedeck.ToolCallEnd, tapedeck.ToolCallResult, TypeToolStatus,
		tapedeck.RunStarted, tapedeck.RunFinished, tapedeck.RunError, TypeAgentState,
		tapedeck.PresenceJoined, tapedeck.PresenceMoved, tapedeck.PresenceLeft, tapedeck.TerminalInput, tapedeck.TerminalOutput:
		return !payload.IsImplied(e)
	case tapedeck.MessageAdded:
		return isSaid(e)
	}
	return strings.HasPrefix(e.Type, "workflow.")
}

// isSaid reports whether a message is of a user or an agent.
func isSaid(e *tapedeck.Event) bool {
	var d struct {
		Message struct {
			Role string `json:"role"`
		} `json:"message"`
	}
	return e.Unpack(&d) && (d.Message.Role == payload.RoleUser || d.Message.Role == payload.RoleAssistant)
}

// channelBlock is how many offsets one number of [ChannelCounts] covers.
const channelBlock = 1000

// ChannelCounts has the number of events in the form of the six channels for each thousand
// offsets of a part of a log, see [InChannels]. The first number is of the thousand that has
// the first offset of the part.
type ChannelCounts []int64

// Count counts an event. first is the first offset of the part.
func (c *ChannelCounts) Count(first int64, e *tapedeck.Event) {
	n := int64(0)
	if InChannels(e) {
		n = 1
	}
	c.add(e.Offset/channelBlock-first/channelBlock, n)
}

func (c *ChannelCounts) add(block, n int64) {
	for int64(len(*c)) <= block {
		*c = append(*c, 0)
	}
	(*c)[block] += n
}

// Join returns the counts of a part and of the part that follows it. first and nextFirst are
// their first offsets.
func (c ChannelCounts) Join(first int64, next ChannelCounts, nextFirst int64) ChannelCounts {
	c = slices.Clone(c)
	for i, n := range next {
		c.add(nextFirst/channelBlock-first/channelBlock+int64(i), n)
	}
	return c
}

// Find returns an offset, at most a thousand before that of the event of the form with the
// number n, and how many events of the form are before the offset. If there are only n events
// or fewer, the offset is near the end. The part must begin with the log.
func (c ChannelCounts) Find(n int64) (offset, before int64) {
	for i, count := range c {
		if offset = int64(i) * channelBlock; before+count > n || i == len(c)-1 {
			break
		}
		before += count
	}
	return offset, before
}

// Before returns an offset, at most a thousand before at, and how many events of the form are
// before it. The part must begin with the log.
func (c ChannelCounts) Before(at int64) (offset, before int64) {
	block := min(at/channelBlock, int64(len(c)))
	for _, count := range c[:block] {
		before += count
	}
	return block * channelBlock, before
}
