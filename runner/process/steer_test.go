package process_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/process"
)

func steerable(t *testing.T, file string, grace time.Duration) *process.Runner {
	return scripted(t, "control", process.Options{Dialect: "claude-control", Command: []string{os.Args[0], "--replay-user-messages", file}, Grace: grace})
}

// sent returns an invocation to whose run users have sent a text. Steer gives it at the
// call with this number.
func sent(at int, text string) tapedeck.Invocation {
	news := make(chan struct{}, 1)
	news <- struct{}{}
	calls := 0
	return tapedeck.Invocation{Task: "the task", Steered: news, Steer: func(context.Context) ([]json.RawMessage, error) {
		if calls++; calls != at {
			return nil, nil
		}
		raw, err := json.Marshal(map[string]string{"id": "u", "role": "user", "content": text})
		return []json.RawMessage{raw}, err
	}}
}

// A message reaches the program while it works, and also after its first result: then the
// program works again, in the same run. Its input stays open until then.
func TestSteer(t *testing.T) {
	for file, at := range map[string]int{"steered": 1, "steered-late": 2} {
		got, err := run(t, t.Context(), steerable(t, file, time.Minute), sent(at, "faster"))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if said := strings.Join(only(got, "TEXT_MESSAGE_CONTENT"), "\n"); !strings.Contains(said, "I work.") || !strings.Contains(said, "I hurry.") {
			t.Errorf("%s: it said %s", file, said)
		}
		if raw := strings.Join(only(got, "RAW"), "\n"); strings.Contains(raw, "isReplay") {
			t.Errorf("%s: the message is in the log twice: %s", file, raw)
		}
	}
}

// A program that does not read the message within the time limit ends the run as it is.
func TestSteerUnread(t *testing.T) {
	got, err := run(t, t.Context(), steerable(t, "steered-unread", 100*time.Millisecond), sent(2, "faster"))
	if err != nil || len(only(got, "TEXT_MESSAGE_CONTENT")) != 1 {
		t.Errorf("%v, %q", err, got)
	}
}

// Without the option that acknowledges messages, and in other dialects, a program gets
// none: they stay in the queue.
func TestSteerNotPossible(t *testing.T) {
	in := sent(1, "faster")
	in.Steer = func(context.Context) ([]json.RawMessage, error) {
		t.Error("a message was taken")
		return nil, nil
	}
	r := control(t, "reject")
	if _, err := run(t, t.Context(), r, in); err != nil || r.Capabilities().Steer {
		t.Errorf("%v; it can be steered: %v", err, r.Capabilities().Steer)
	}
	for _, p := range process.Presets {
		r, err := process.New(process.Options{Dialect: p.Dialect, Command: p.Command, Resume: p.Resume})
		if err != nil || r.Capabilities().Steer != (p.Name == "claude") {
			t.Errorf("%s: %v, it can be steered: %v", p.Name, err, r.Capabilities().Steer)
		}
	}
}

// A run that cannot get its messages fails.
func TestSteerFails(t *testing.T) {
	in := sent(1, "")
	in.Steer = func(context.Context) ([]json.RawMessage, error) {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "no disk")
	}
	if _, err := run(t, t.Context(), steerable(t, "steered", time.Second), in); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("the run ends with %v", err)
	}
}
