package deck_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"os"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
)

// echo is an agent loop in Go: it yields what the agent does, and Tapedeck writes
// it down, streams it, and ends the run.
func echo(_ context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		id := tapedeck.NewID("msg_")
		if !yield(payload.NewEvent(payload.TextMessageStart{MessageID: id, Role: payload.RoleAssistant}), nil) {
			return
		}
		for _, word := range strings.Fields(in.Task) {
			if !yield(payload.NewEvent(payload.TextMessageContent{MessageID: id, Delta: payload.Piece(word + " ")}), nil) {
				return
			}
		}
		yield(payload.NewEvent(payload.TextMessageEnd{MessageID: id}), nil)
	}
}

func open(agents ...deck.Agent) *deck.Deck {
	d, err := deck.Open(context.Background(), "", deck.Options{InMemory: true, Agents: agents})
	if err != nil {
		panic(err)
	}
	return d
}

var echoAgent = deck.Agent{Name: "echo", Runner: tapedeck.RunnerFunc(echo)}

// A server in ten lines: the HTTP API, the protocols and the screen, on a folder
// with a SQLite file.
func Example() {
	dir, err := os.MkdirTemp("", "tapedeck")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	d, err := deck.Open(context.Background(), dir, deck.Options{})
	if err != nil {
		panic(err)
	}
	defer d.Close(context.Background())
	mux := http.NewServeMux()
	mux.Handle("/", d.Handler())
	fmt.Println(d.Ready(context.Background()))
	// Output: <nil>
}

// A program starts a run and follows it live: Follow yields each event after it is durable,
// and the last one is the terminal event.
func ExampleDeck_Run() {
	ctx := context.Background()
	d := open(echoAgent)
	defer d.Close(ctx)
	run, err := d.Run(ctx, api.Task{Agent: "echo", Text: "hello there"})
	if err != nil {
		panic(err)
	}
	for e, err := range d.Follow(ctx, run.Session, run.Offset) {
		if err != nil {
			panic(err)
		}
		if e.Type == tapedeck.RunFinished {
			break
		}
	}
	messages, err := d.Session(run.Session).Messages(ctx)
	if err != nil {
		panic(err)
	}
	for _, m := range messages {
		fmt.Printf("%s: %s\n", m.Role, m.Text)
	}
	// Output:
	// user: hello there
	// assistant: hello there
}

// Events of your own are appended to a session like any other.
func ExampleSession_Append() {
	ctx := context.Background()
	d := open()
	defer d.Close(ctx)
	s, err := d.Create(ctx, api.NewSession{ID: "notes", Title: "My notes"})
	if err != nil {
		panic(err)
	}
	message := payload.NewMessage("m1", payload.RoleUser, "remember the milk")
	done, err := s.Append(ctx, payload.NewEvent(payload.MessageAdded{Message: message}))
	if err != nil {
		panic(err)
	}
	messages, err := s.Messages(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(done.First, messages[0].Text)
	// Output: 1 remember the milk
}

// A rewind deletes nothing: it can be undone.
func ExampleSession_Rewind() {
	ctx := context.Background()
	d := open()
	defer d.Close(ctx)
	s, _ := d.Create(ctx, api.NewSession{ID: "trip"})
	for _, text := range []string{"to Bern", "no, to Basel"} {
		m := payload.NewMessage(text, payload.RoleUser, text)
		if _, err := s.Append(ctx, payload.NewEvent(payload.MessageAdded{Message: m})); err != nil {
			panic(err)
		}
	}
	count := func() int {
		messages, err := s.Messages(ctx)
		if err != nil {
			panic(err)
		}
		return len(messages)
	}
	rewound, err := s.Rewind(ctx, api.Rewind{ToOffset: new(int64(2))})
	if err != nil {
		panic(err)
	}
	fmt.Println("after the rewind:", count())
	if _, err := s.Undo(ctx, rewound.Marker); err != nil {
		panic(err)
	}
	fmt.Println("after the undo:", count())
	// Output:
	// after the rewind: 1
	// after the undo: 2
}

// A fork shares the events of its parent; what is appended to one is not in the
// other.
func ExampleSession_Fork() {
	ctx := context.Background()
	d := open()
	defer d.Close(ctx)
	s, _ := d.Create(ctx, api.NewSession{ID: "trip"})
	fork, err := s.Fork(ctx, api.Fork{ID: "detour", Title: new("A detour")})
	if err != nil {
		panic(err)
	}
	info, err := fork.Info(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(fork.ID(), "is a fork of", info.Parent, "at offset", info.ForkedAt)
	// Output: detour is a fork of trip at offset 1
}
