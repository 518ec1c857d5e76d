package push

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/memory"
)

type noTasks struct{}

func (noTasks) Updates(context.Context, Task, string, int64) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) { yield(Update{}, context.Canceled) }
}

// TestLimitOfTheServer: configs for which something may follow are limited, others are not.
func TestLimitOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		s, err := m.Create(t.Context(), tapedeck.Spec{ID: "c"})
		if err != nil {
			t.Fatal(err)
		}
		d := New(Options{Store: m.PushConfigs(), Sessions: m}, noTasks{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { d.Run(ctx); close(ended) }()
		defer func() { cancel(); <-ended }()
		set := func(id string, from int64) error {
			task := Task{Session: "c", Gen: s.Session.Gen, Name: "inv"}
			return d.Set(t.Context(), task, &Config{Version: "1.0", PushConfig: sdk.PushConfig{ID: id, URL: "https://hook.example"}}, from)
		}
		if err := set("first", 1); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		d.count = maxActive
		d.mu.Unlock()
		if err := set("second", 1); tapedeck.KindOf(err) != tapedeck.Limited {
			t.Errorf("one more: %v", err)
		}
		for id, from := range map[string]int64{"first": 1, "of a task that has ended": -1} {
			if err := set(id, from); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}
