package acp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/acp"
)

// sent returns the members of an invocation to whose run users have sent texts: each call
// of Steer gives one of them.
func sent(in tapedeck.Invocation, texts ...string) tapedeck.Invocation {
	news := make(chan struct{}, 1)
	news <- struct{}{}
	in.Steered = news
	in.Steer = func(context.Context) (messages []json.RawMessage, _ error) {
		if len(texts) > 0 {
			raw, _ := json.Marshal(map[string]string{"id": "u", "role": "user", "content": texts[0]})
			texts, messages = texts[1:], []json.RawMessage{raw}
		}
		return messages, nil
	}
	return in
}

// A message reaches an agent that announces the extension in the middle of its turn. What
// the agent does not take there is its next prompt in the same run.
func TestSteer(t *testing.T) {
	for _, tt := range []struct {
		name, task string
		texts      []string
		want       []string // the texts of the agent
	}{
		{"injected", "work", []string{"faster"}, []string{"I work. ", "faster"}},
		{"the turn had ended", "work", []string{"nothing runs"}, []string{"I work. ", "nothing runs"}},
		{"another turn", "work", []string{"too late"}, []string{"I work. ", "too late"}},
		{"an error", "work", []string{"x"}, []string{"I work. ", "x"}},
		{"after its last answer", "short", []string{"and then"}, []string{"and then"}},
		{"twice", "work", []string{"faster", "and then"}, []string{"I work. ", "faster", "and then"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := play(t, t.Context(), scripted(t, "steered", acp.Options{}), sent(tapedeck.Invocation{Task: tt.task}, tt.texts...))
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, line := range got {
				var d struct{ Delta string }
				if data, ok := strings.CutPrefix(line, "TEXT_MESSAGE_CONTENT "); ok && json.Unmarshal([]byte(data), &d) == nil {
					said = append(said, d.Delta)
				}
			}
			if strings.Join(said, "|") != strings.Join(tt.want, "|") {
				t.Errorf("it said %q, want %q", said, tt.want)
			}
		})
	}
}

// An agent that does not announce the extension gets nothing: the messages stay in the queue.
func TestSteerNotAnnounced(t *testing.T) {
	r := scripted(t, "plain", acp.Options{})
	in := sent(tapedeck.Invocation{Task: "talk"}, "faster")
	taken := false
	in.Steer = func(context.Context) ([]json.RawMessage, error) { taken = true; return nil, nil }
	if _, err := play(t, t.Context(), r, in); err != nil || taken {
		t.Errorf("%v; a message was taken: %v", err, taken)
	}
	if r.Capabilities().Steer {
		t.Error("it says that it can be steered")
	}
	steered := scripted(t, "steered", acp.Options{})
	if steered.Capabilities().Steer {
		t.Error("it says that it can be steered before it has run")
	}
	if _, err := play(t, t.Context(), steered, tapedeck.Invocation{Task: "short"}); err != nil || !steered.Capabilities().Steer {
		t.Errorf("%v; it does not say that it can be steered", err)
	}
}

// A run that cannot get its messages fails. A cancel does not wait for them.
func TestSteerFails(t *testing.T) {
	in := sent(tapedeck.Invocation{Task: "short"})
	in.Steer = func(context.Context) ([]json.RawMessage, error) {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "no disk")
	}
	if _, err := play(t, t.Context(), scripted(t, "steered", acp.Options{}), in); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("the run ends with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in = sent(tapedeck.Invocation{Task: "endless"})
	in.Steer = func(context.Context) ([]json.RawMessage, error) { cancel(); return nil, nil }
	if _, err := play(t, ctx, scripted(t, "steered", acp.Options{}), in); err != nil {
		t.Error(err)
	}
}
