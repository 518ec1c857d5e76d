package acp_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/acp"
)

func history(events ...tapedeck.Event) func(context.Context) iter.Seq2[tapedeck.Event, error] {
	return func(context.Context) iter.Seq2[tapedeck.Event, error] {
		return func(yield func(tapedeck.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func TestResume(t *testing.T) {
	before := history(
		payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("u1", "user", "the first question")}),
		payload.NewEvent(payload.TextMessageStart{MessageID: "a1"}),
		payload.NewEvent(payload.TextMessageContent{MessageID: "a1", Delta: "the first answer"}),
	)
	for _, tt := range []struct {
		name, agent string
		link        *tapedeck.Link
		native      string
		lossy       bool
	}{
		{"resumed", "plain", &tapedeck.Link{Runner: "acp:x", NativeID: "s1"}, "s1", false},
		{"loaded, and the replay is muted", "plain", &tapedeck.Link{Runner: "acp:x", NativeID: "old"}, "old", false},
		{"loaded, and the agent replays after its answer", "plain", &tapedeck.Link{Runner: "acp:x", NativeID: "late"}, "late", false},
		{"neither", "plain", &tapedeck.Link{Runner: "acp:x", NativeID: "gone"}, "s1", true},
		{"resume is announced but missing", "qwen", &tapedeck.Link{Runner: "acp:x", NativeID: "s0"}, "s0", false},
		{"load is announced but missing", "gemini", &tapedeck.Link{Runner: "acp:x", NativeID: "s0"}, "s1", true},
		{"nothing to resume", "plain", nil, "s1", true},
		{"a conversation of another runner", "plain", &tapedeck.Link{Runner: "acp:y", NativeID: "s1"}, "s1", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := scripted(t, tt.agent, acp.Options{Name: "x"})
			got, err := play(t, t.Context(), r, tapedeck.Invocation{Task: "it was cut: the first answer; go on", Unheard: "the first answer", Link: tt.link, History: before, Ask: allow("yes")})
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(got, "\n")
			if want := `agent.linked {"runner":"acp:x","nativeId":"` + tt.native + `"}`; strings.Count(all, "agent.linked") != 1 || !strings.Contains(all, want) {
				t.Errorf("want %s in\n%s", want, all)
			}
			if strings.Contains(all, "said before") || strings.Contains(all, "w199") || strings.Contains(all, "old answer") {
				t.Errorf("it repeats the earlier conversation:\n%s", all)
			}
			if lossy := strings.Contains(all, `"tapedeck.lossy"`); lossy != tt.lossy {
				t.Errorf("lossy events: %v", lossy)
			}
			if tt.agent != "plain" {
				return
			}
			if told := texts(got); strings.Count(told, "the first answer") != 1 || strings.Contains(told, "Assistant: ") != tt.lossy || !strings.HasSuffix(told, "go on") {
				t.Errorf("the agent received %q", told)
			}
		})
	}
}

// TestLoadFails checks that the log has the reason why an agent could not load its
// conversation.
func TestLoadFails(t *testing.T) {
	before := history(payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("u1", "user", "hello")}))
	r := scripted(t, "plain", acp.Options{Name: "x"})
	got, err := play(t, t.Context(), r, tapedeck.Invocation{Task: "go on", Link: &tapedeck.Link{Runner: "acp:x", NativeID: "broken"}, History: before})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(got, "\n"); !strings.Contains(all, "could not resume its conversation: Internal error: No previous sessions found for this project.") {
		t.Error(all)
	}
}
