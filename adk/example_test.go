package adk_test

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck/adk"
	"github.com/tapedeck/tapedeck/deck"
)

// counter is a model that says how many messages it was given.
type counter struct{}

func (counter) Name() string { return "counter" }

func (counter) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: genai.NewContentFromText(fmt.Sprintf("You gave me %d messages.", len(req.Contents)), genai.RoleModel)}, nil)
	}
}

// An agent of ADK runs on the log. After a rewind its model gets the effective history.
func Example() {
	ctx := context.Background()
	d, err := deck.Open(ctx, "", deck.Options{InMemory: true})
	if err != nil {
		panic(err)
	}
	defer d.Close(ctx)
	sessions := adk.NewService(d, adk.Options{})
	record, err := sessions.Plugin()
	if err != nil {
		panic(err)
	}
	bot, err := llmagent.New(llmagent.Config{Name: "bot", Model: counter{}})
	if err != nil {
		panic(err)
	}
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: bot, SessionService: sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{record}},
	})
	if err != nil {
		panic(err)
	}
	say := func(text string) (invocation string) {
		for e, err := range r.Run(ctx, "ada", "s1", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				panic(err)
			}
			invocation = e.InvocationID
		}
		return invocation
	}
	say("to Bern")
	second := say("no, to Basel")
	if _, err := sessions.Rewind(ctx, &adk.RewindRequest{AppName: "app", UserID: "ada", SessionID: "s1", InvocationID: second}); err != nil {
		panic(err)
	}
	say("to Basel, please")
	messages, err := d.Session(adk.LogID("app", "ada", "s1")).Messages(ctx)
	if err != nil {
		panic(err)
	}
	for _, m := range messages {
		fmt.Printf("%s: %s\n", m.Role, m.Text)
	}
	// Output:
	// user: to Bern
	// assistant: You gave me 1 messages.
	// user: to Basel, please
	// assistant: You gave me 3 messages.
}
