package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// taskEvent is the name of the CUSTOM event that records the task of the agent.
const taskEvent = "a2a.task"

// reattach continues a run that an earlier process of the server has begun: it asks the
// agent for the task, and records what the log does not have.
func (t *turn) reattach(ctx context.Context) error {
	for e, err := range t.in.Begun(ctx) {
		if err != nil {
			return err
		}
		t.recall(e)
	}
	if t.task == "" {
		return tapedeck.Errorf(tapedeck.Unavailable, "the server was restarted before the agent had accepted the task").
			WithHint("send the task again")
	}
	return t.follow(ctx, t.reconnect(ctx))
}

// recall notes what the log has of the run.
func (t *turn) recall(e tapedeck.Event) {
	data, err := payload.Decode(e)
	if err != nil {
		return // an event that cannot be decoded is left out
	}
	switch d := data.(type) {
	case payload.AgentLinked:
		t.where = placeOf(d.NativeID)
	case payload.Custom:
		if d.Name == taskEvent {
			t.task = sdk.TaskID((&payload.Message{Content: d.Value}).Text())
		}
	case payload.TextMessageStart:
		t.said[t.native(d.MessageID)] += "" // it has begun
	case payload.TextMessageContent:
		t.said[t.native(d.MessageID)] += d.Delta.Whole() // what the narrator wrote has no halves
	case payload.TextMessageEnd:
		if t.native(d.MessageID) == t.part() {
			t.series++
		}
	case payload.MessageAdded:
		if d.Message.Role == payload.RoleAssistant {
			t.said[t.native(d.Message.ID)] = d.Message.Text()
		}
	case payload.ToolCallStart:
		t.called[t.native(d.ToolCallID)] = false
	case payload.ToolCallResult:
		t.called[t.native(d.ToolCallID)] = true
	}
}

// native returns the agent's id of a message or a call. In the log an id is
// INVOCATION.KIND.ID; native returns ID, or "" if the agent gave none.
func (t *turn) native(id string) string {
	_, own, _ := strings.Cut(strings.TrimPrefix(id, t.in.ID+"."), ".")
	return own
}

// maxID is the length of an id, in bytes, above which its hash replaces it: the narrator
// changes longer ones, and they could not be found again.
const maxID = 100

func short(id string) string {
	if len(id) <= maxID {
		return id
	}
	return hashOf(id)
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
