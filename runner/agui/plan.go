package agui

import (
	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// maxPlan is the size of the arguments above which no plan is read from them, in bytes.
const maxPlan = 64 << 10

// A calling is a tool call whose arguments are arriving.
type calling struct {
	name string
	args []byte
}

// plan returns the plan that an event completes: AG-UI has no event for it, so agents set
// it with a tool such as write_todos.
func (t *turn) plan(e *tapedeck.Event) (plan payload.PlanUpdated, ok bool) {
	switch e.Type {
	case tapedeck.ToolCallStart, tapedeck.ToolCallArgs, tapedeck.ToolCallEnd:
	default:
		return plan, false
	}
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "toolCallId"))
	if e.Type == tapedeck.ToolCallStart {
		if jsonobj.Member(e.Data, "subagentRunId") == nil { // a sub-agent has a plan of its own
			t.calling[id] = &calling{name: jsonobj.StringOf(jsonobj.Member(e.Data, "toolCallName"))}
		}
		return plan, false
	}
	k := t.calling[id]
	if k == nil {
		return plan, false
	}
	if e.Type == tapedeck.ToolCallArgs {
		if k.args = append(k.args, jsonobj.PieceOf(jsonobj.Member(e.Data, "delta"))...); len(k.args) > maxPlan {
			delete(t.calling, id)
		}
		return plan, false
	}
	delete(t.calling, id)
	plan.Entries, ok = narrate.Todos(k.name, []byte(payload.Whole(string(k.args))))
	return plan, ok
}
