package client_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// serve starts a server with one agent, which repeats its task.
func serve() (url string, stop func()) {
	echo := func(_ context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
		return func(yield func(tapedeck.Event, error) bool) {
			for _, p := range []payload.Payload{
				payload.TextMessageStart{MessageID: "m1", Role: payload.RoleAssistant},
				payload.TextMessageContent{MessageID: "m1", Delta: payload.Piece(in.Task)},
				payload.TextMessageEnd{MessageID: "m1"},
			} {
				if !yield(payload.NewEvent(p), nil) {
					return
				}
			}
		}
	}
	d, err := deck.Open(context.Background(), "", deck.Options{
		InMemory: true, Agents: []deck.Agent{{Name: "echo", Runner: tapedeck.RunnerFunc(echo)}},
	})
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(d.Handler())
	return server.URL, func() {
		server.Close()
		_ = d.Close(context.Background())
	}
}

// A task starts a run, and the server owns it: a client that follows the run can
// disconnect and continue from the last offset that it has seen.
func Example() {
	ctx := context.Background()
	url, stop := serve()
	defer stop()
	c, err := client.New(url)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	run, err := c.Run(ctx, api.Task{Text: "hello there", Agent: "echo", Actor: "user:ada"})
	if err != nil {
		panic(err)
	}
	from := client.FollowOptions{PageOptions: client.PageOptions{From: run.Offset}, Until: true}
	for record, err := range c.Follow(ctx, run.Session, from) {
		if err != nil {
			panic(err)
		}
		e, err := record.Event()
		if err != nil {
			panic(err)
		}
		fmt.Println(e.Type, e.Actor)
	}
	// Output:
	// message.added user:ada
	// RUN_STARTED agent:echo
	// TEXT_MESSAGE_START agent:echo
	// TEXT_MESSAGE_CONTENT agent:echo
	// TEXT_MESSAGE_END agent:echo
	// RUN_FINISHED tapedeck
}

// A writer does not wait for the answer to one append before it sends the next.
func ExampleClient_NewWriter() {
	ctx := context.Background()
	url, stop := serve()
	defer stop()
	c, err := client.New(url)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	s, err := c.Create(ctx, api.NewSession{Title: "Measurements"})
	if err != nil {
		panic(err)
	}
	w := c.NewWriter(ctx, s.ID, client.WriterOptions{})
	for range 1000 {
		if _, err := w.Append(ctx, tapedeck.Event{Type: "acme.measured"}); err != nil {
			panic(err)
		}
	}
	fmt.Println(w.Close(ctx)) // everything is durable now
	s, err = c.Session(ctx, s.ID)
	fmt.Println(s.Head, err)
	// Output:
	// <nil>
	// 1001 <nil>
}

// Views are Go structs, folded by the server as of any offset.
func ExampleClient_Snapshot() {
	ctx := context.Background()
	url, stop := serve()
	defer stop()
	c, err := client.New(url)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	run, err := c.Run(ctx, api.Task{Text: "hello there", Agent: "echo"})
	if err != nil {
		panic(err)
	}
	for _, err := range c.Follow(ctx, run.Session, client.FollowOptions{Until: true}) {
		if err != nil {
			panic(err)
		}
	}
	now, err := c.Snapshot(ctx, run.Session, view.Query{})
	if err != nil {
		panic(err)
	}
	for _, m := range now.Messages {
		fmt.Printf("%s: %s\n", m.Role, m.Text)
	}
	// Output:
	// user: hello there
	// assistant: hello there
}

// A proxy in front of the server may ask for a token. The function is called before
// each request, so it can renew the token.
func ExampleWithHeader() {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"agents":[]}`)
	}))
	defer proxy.Close()
	c, err := client.New(proxy.URL, client.WithHeader(func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer secret"}}, nil
	}))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	agents, err := c.Agents(context.Background())
	fmt.Println(len(agents), err)
	// Output:
	// Bearer secret
	// 0 <nil>
}
