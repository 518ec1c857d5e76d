package tapedeck_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A session is a log of events: an append gives them offsets from 0, without gaps,
// and all readers see the same.
func Example() {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	defer store.Close()
	if _, err := store.Create(ctx, tapedeck.Spec{ID: "ses_1"}); err != nil {
		panic(err)
	}
	done, err := store.Append(ctx, tapedeck.Append{Session: "ses_1", Events: []tapedeck.Event{
		{Type: tapedeck.BookmarkAdded, Actor: "user:ada", Data: []byte(`{"offset":0,"label":"here"}`)},
		{Type: "acme.note", Data: []byte(`{"text":"a type of your own"}`)},
	}})
	if err != nil {
		panic(err)
	}
	fmt.Println("the next event gets offset", done.Next)
	for e, err := range tapedeck.Events(ctx, store, "ses_1", 0) {
		fmt.Println(e.Offset, e.Type, e.Channel, err)
	}
	// Output:
	// the next event gets offset 2
	// 0 bookmark.added session <nil>
	// 1 acme.note agentState <nil>
}

// An error has a kind for programs, a sentence for people, and a hint.
func ExampleKindOf() {
	err := fmt.Errorf("to start: %w", tapedeck.Errorf(tapedeck.Conflict, "thread main is busy").WithHint("cancel the run, or wait"))
	var e *tapedeck.Error
	if tapedeck.KindOf(err) == tapedeck.Conflict && errors.As(err, &e) {
		fmt.Printf("%s (%s)\n", e.Message, e.Hint)
	}
	// Output: thread main is busy (cancel the run, or wait)
}

// The status of a session is a fold of its events.
func ExampleSession_Apply() {
	s := tapedeck.Session{ID: "ses_1", Status: tapedeck.StatusIdle}
	at := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for _, e := range []tapedeck.Event{
		{Type: tapedeck.RunStarted, Time: at, Invocation: "inv_1", Data: []byte(`{"threadId":"main","runId":"inv_1"}`)},
		{Type: tapedeck.RunError, Time: at, Invocation: "inv_1", Data: []byte(`{"message":"no model"}`)},
	} {
		s.Apply(&e)
		fmt.Println(e.Type, s.Status, len(s.Runs))
	}
	// Output:
	// RUN_STARTED running 1
	// RUN_ERROR failed 0
}
