package view_test

import (
	"fmt"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// conversation yields the events of a short conversation.
func conversation() iter.Seq2[tapedeck.Event, error] {
	payloads := []payload.Payload{
		payload.MessageAdded{Message: payload.NewMessage("m1", payload.RoleUser, "Is it raining?")},
		payload.TextMessageStart{MessageID: "m2", Role: payload.RoleAssistant},
		payload.TextMessageContent{MessageID: "m2", Delta: "It "},
		payload.TextMessageContent{MessageID: "m2", Delta: "is."},
		payload.TextMessageEnd{MessageID: "m2"},
	}
	return func(yield func(tapedeck.Event, error) bool) {
		for i, p := range payloads {
			e := payload.NewEvent(p)
			e.Offset, e.Channel = int64(i), tapedeck.ChannelOf(e.Type)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// A view is a fold of events. The same events give the same view, here as of two
// offsets.
func ExampleFold() {
	for _, at := range []int64{3, 5} {
		fold, err := view.Fold(conversation(), nil, at)
		if err != nil {
			panic(err)
		}
		for _, m := range fold.Snapshot().Messages {
			fmt.Printf("before %d: %s %q, %s\n", at, m.Role, m.Text, m.Status)
		}
	}
	// Output:
	// before 3: user "Is it raining?", complete
	// before 3: assistant "It ", running
	// before 5: user "Is it raining?", complete
	// before 5: assistant "It is.", complete
}

// Context returns the messages that a model gets to continue the conversation.
func ExampleContext() {
	fold, err := view.Fold(conversation(), nil, 5)
	if err != nil {
		panic(err)
	}
	for _, m := range view.Context(fold.Snapshot(), view.InThread(tapedeck.MainThread)) {
		fmt.Printf("%s: %s\n", m.Role, m.Content)
	}
	// Output:
	// user: Is it raining?
	// assistant: It is.
}
