package acp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/acp"
)

// onWire returns a runner of an agent that plays a part of a recording, and the
// recorded messages of the agent up to the answer to its first prompt.
func onWire(t *testing.T, agent, recording, part string, o acp.Options) (*acp.Runner, []wireLine) {
	path := recorded(t, "acp-wire."+agent+"."+recording+".jsonl")
	if agent == "gemini" {
		o.Auth = "gemini-api-key"
	}
	var said []wireLine
	for _, w := range wire(path, part) {
		said = append(said, w)
		if w.Dir == "<" && strings.Contains(string(w.M.Result), "stopReason") {
			break
		}
	}
	return runner(agent, o, "DECK_TEST_WIRE="+path, "DECK_TEST_PART="+part), said
}

// expected returns the text of all chunks.
func expected(said []wireLine, kind string) string {
	var b strings.Builder
	for _, w := range said {
		var p struct {
			Update struct {
				SessionUpdate string
				MessageID     string
				Content       json.RawMessage
			}
		}
		var text struct{ Text string }
		if json.Unmarshal(w.M.Params, &p) != nil || p.Update.SessionUpdate != kind || json.Unmarshal(p.Update.Content, &text) != nil {
			continue
		}
		if p.Update.MessageID == "" && strings.HasPrefix(text.Text, "Warning:") {
			continue // a notice of Codex's adapter, see [Quirks.Notices]
		}
		b.WriteString(text.Text)
	}
	return b.String()
}

var recordedAgents = []string{"claude", "codex", "gemini", "opencode", "qwen"}

// TestRecordedPrompt replays real agents: no text may be lost, and all events are in order.
func TestRecordedPrompt(t *testing.T) {
	for _, agent := range recordedAgents {
		t.Run(agent, func(t *testing.T) {
			r, said := onWire(t, agent, "full", "1", acp.Options{})
			in := tapedeck.Invocation{Task: "go", Ask: func(_ context.Context, q tapedeck.Question) (tapedeck.Choice, error) {
				for _, o := range q.Options {
					if o.Kind == "allow_once" {
						return tapedeck.Choice{Option: o.ID}, nil
					}
				}
				return tapedeck.Choice{}, nil
			}}
			got, err := play(t, t.Context(), r, in)
			if err != nil {
				t.Fatal(err)
			}
			if want := expected(said, "agent_message_chunk"); texts(got) != want || want == "" {
				t.Errorf("it said %q, want %q", texts(got), want)
			}
			all := strings.Join(got, "\n")
			plan := agent != "codex" && agent != "gemini"
			for what, want := range map[string]bool{
				"hello-from-tool": true, "TOOL_CALL_START": true, "TOOL_CALL_RESULT": true, "agent.linked": true,
				"plan.updated": plan, "usage.reported": true, `"error":true`: false,
				"REASONING_START": expected(said, "agent_thought_chunk") != "",
			} {
				if strings.Contains(all, what) != want {
					t.Errorf("there is %s: %v, in\n%s", what, !want, strings.Join(without(got, "RAW", "TEXT_MESSAGE_CONTENT"), "\n"))
				}
			}
			if starts, results := strings.Count(all, "TOOL_CALL_START"), strings.Count(all, "TOOL_CALL_RESULT"); starts != results {
				t.Errorf("%d tool calls, %d answers", starts, results)
			}
		})
	}
}

func TestRecordedCancelWhileAsking(t *testing.T) {
	for _, agent := range recordedAgents {
		if agent == "codex" {
			continue // this agent did not ask
		}
		t.Run(agent, func(t *testing.T) {
			r, _ := onWire(t, agent, "permission-cancel", "1", acp.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			in := tapedeck.Invocation{Task: "go", Ask: func(ctx context.Context, _ tapedeck.Question) (tapedeck.Choice, error) {
				cancel()
				<-ctx.Done()
				return tapedeck.Choice{Outcome: "cancelled"}, nil
			}}
			got, err := play(t, ctx, r, in)
			if err != nil || !strings.Contains(strings.Join(got, "\n"), "TOOL_CALL_START") {
				t.Errorf("%v, %s", err, got)
			}
		})
	}
}

// TestRecordedResume resumes real agents after kill -9: they must not repeat earlier
// text.
func TestRecordedResume(t *testing.T) {
	for _, agent := range recordedAgents {
		if agent == "gemini" {
			continue // this agent cannot resume, and the recorded client gave up
		}
		t.Run(agent, func(t *testing.T) {
			r, said := onWire(t, agent, "crash", "2", acp.Options{})
			var replayed int
			var p struct{ SessionID string }
			for i, w := range said {
				if w.M.Method == "session/prompt" {
					replayed = i
					if err := json.Unmarshal(w.M.Params, &p); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := play(t, t.Context(), r, tapedeck.Invocation{Task: "go", Link: &tapedeck.Link{Runner: "acp:" + agent, NativeID: p.SessionID}})
			if err != nil {
				t.Fatal(err)
			}
			if want := expected(said[replayed:], "agent_message_chunk"); texts(got) != want {
				t.Errorf("it said %q, want %q", texts(got), want)
			}
			if strings.Contains(strings.Join(got, "\n"), "lossy") {
				t.Error("it did not resume")
			}
		})
	}
}
