package workflow

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// TestAnswerAtTheMomentOfACancel: an answer that is in the log before its run was cancelled
// counts when the workflow is resumed. One that a failed run had taken is asked for again.
func TestAnswerAtTheMomentOfACancel(t *testing.T) {
	for end, want := range map[string]int{`RUN_FINISHED {"threadId":"main","runId":"inv_1","outcome":{"type":"cancelled"}}`: 1, `RUN_ERROR {"message":"no","code":"runner"}`: 2} {
		inBubble(t, func(t *testing.T) {
			h := newHost(t, diagramOf(startEnd+`<userTask id="U"/>`, "S>U", "U>E"))
			if err := h.begin(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			ended, stop := h.walkOn()
			synctest.Wait()
			stop()
			<-ended
			kind, data, _ := strings.Cut(end, " ")
			answer := payload.NewEvent(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: "per_1.2", Option: "submit"}})
			for _, ev := range []tapedeck.Event{answer, {Type: kind, Data: []byte(data)}} {
				ev.Invocation, ev.Thread = "inv_1", "main"
				h.append(ev)
			}
			if err := h.begin(t.Context(), "inv_1"); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			go func() { ended <- h.walk(ctx, "inv_1") }()
			synctest.Wait()
			stop()
			<-ended
			asked := 0
			for ev := range h.events(func(*tapedeck.Event) bool { return true }) {
				if ev.Type == tapedeck.PermissionRequested {
					asked++
				}
			}
			if done := h.state().Outcome == view.WorkflowCompleted; asked != want || done != (want == 1) {
				t.Errorf("%s: asked %d times, completed %t; the log has %s", kind, asked, done, h.trace())
			}
		})
	}
}
