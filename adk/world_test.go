package adk_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/adk"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A script is a model that plays a script: one reply for each call.
type script struct {
	mu      sync.Mutex
	replies []reply
	asked   []string // the contents of each request
}

// A reply is what the model says to one request.
type reply struct {
	pieces []*genai.Part // streamed before the whole
	parts  []*genai.Part
	err    error
	during func() // called after the pieces
}

func (s *script) Name() string { return "script-1" }

func (s *script) GenerateContent(_ context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, transcript(req.Contents))
	if len(s.replies) == 0 {
		return func(yield func(*model.LLMResponse, error) bool) { yield(nil, errors.New("the script has ended")) }
	}
	r := s.replies[0]
	s.replies = s.replies[1:]
	return func(yield func(*model.LLMResponse, error) bool) {
		for _, p := range r.pieces {
			if stream && !yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{p}}, Partial: true}, nil) {
				return
			}
		}
		if r.during != nil {
			r.during()
		}
		if r.err != nil {
			yield(nil, r.err)
			return
		}
		yield(&model.LLMResponse{
			Content: &genai.Content{Role: genai.RoleModel, Parts: r.parts}, ModelVersion: "script-1", TurnComplete: true,
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, CandidatesTokenCount: 5, ThoughtsTokenCount: 2, TotalTokenCount: 17},
		}, nil)
	}
}

// transcript returns contents as text.
func transcript(contents []*genai.Content) string {
	var b strings.Builder
	for _, c := range contents {
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				fmt.Fprintf(&b, "%s calls %s %v; ", c.Role, p.FunctionCall.Name, p.FunctionCall.Args)
			case p.FunctionResponse != nil:
				fmt.Fprintf(&b, "%s answers %v; ", p.FunctionResponse.Name, p.FunctionResponse.Response)
			default:
				fmt.Fprintf(&b, "%s: %s; ", c.Role, p.Text)
			}
		}
	}
	return strings.TrimSpace(b.String())
}

func says(text string) reply { return reply{parts: []*genai.Part{{Text: text}}} }

func streams(pieces ...string) reply {
	r := says(strings.Join(pieces, ""))
	for _, p := range pieces {
		r.pieces = append(r.pieces, &genai.Part{Text: p})
	}
	return r
}

func callsWeather(city string) reply {
	return reply{parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "weather", Args: map[string]any{"city": city}}}}}
}

// A world is a deck with an ADK runner on it.
type world struct {
	t       *testing.T
	deck    *deck.Deck
	service *adk.Service
	model   *script
	runner  *runner.Runner
}

type city struct {
	City string `json:"city"`
}

type weather struct {
	Report string `json:"report"`
}

// newWorld returns a world in a folder, or in memory if dir is "".
func newWorld(t *testing.T, dir string, withPlugin bool, replies ...reply) *world {
	t.Helper()
	w := &world{t: t, deck: open(t, dir), model: &script{replies: replies}}
	w.service = serviceOn(t, w.deck)
	look, err := functiontool.New(functiontool.Config{Name: "weather", Description: "the weather of a city"}, func(_ agent.Context, c city) (weather, error) {
		if c.City == "" {
			return weather{}, errors.New("no city")
		}
		return weather{"rain in " + c.City}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	bot, err := llmagent.New(llmagent.Config{Name: "bot", Model: w.model, Tools: []tool.Tool{look}, OutputKey: "said"})
	if err != nil {
		t.Fatal(err)
	}
	c := runner.Config{AppName: "app", Agent: bot, SessionService: w.service, AutoCreateSession: true}
	if withPlugin {
		p, err := w.service.Plugin()
		if err != nil {
			t.Fatal(err)
		}
		c.PluginConfig.Plugins = []*plugin.Plugin{p}
	}
	if w.runner, err = runner.New(c); err != nil {
		t.Fatal(err)
	}
	return w
}

// run gives the agent a message, and returns the id of the invocation and the error.
func (w *world) run(ctx context.Context, text string) (invocation string, failed error) {
	w.t.Helper()
	for e, err := range w.runner.Run(ctx, "ada", "s1", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{StreamingMode: agent.StreamingModeSSE}) {
		if err != nil {
			failed = errors.Join(failed, err)
		}
		if e != nil {
			invocation = e.InvocationID
		}
	}
	return invocation, failed
}

// must runs without an error.
func (w *world) must(text string) (invocation string) {
	w.t.Helper()
	invocation, err := w.run(w.t.Context(), text)
	if err != nil {
		w.t.Fatal(err)
	}
	return invocation
}

func (w *world) log() *deck.Session { return w.deck.Session(adk.LogID("app", "ada", "s1")) }

// shown returns the conversation as the screen shows it.
func (w *world) shown() string {
	w.t.Helper()
	messages, err := w.log().Messages(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, m := range messages {
		lines = append(lines, m.Role+": "+m.Text)
	}
	return strings.Join(lines, "\n")
}

func (w *world) snapshot() view.Snapshot {
	w.t.Helper()
	now, err := w.log().Snapshot(w.t.Context(), view.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(now.Notes) > 0 {
		w.t.Errorf("events that cannot be folded: %+v", now.Notes)
	}
	return now
}

// got returns the events that ADK gets.
func (w *world) got() string {
	w.t.Helper()
	done, err := w.service.Get(w.t.Context(), &session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if err != nil {
		w.t.Fatal(err)
	}
	var contents []*genai.Content
	for e := range done.Session.Events().All() {
		if e.Content != nil {
			contents = append(contents, e.Content)
		}
	}
	return transcript(contents)
}

// await follows the session until the text that is streamed has a length and ends with a
// text.
func (w *world) await(end string, length int) {
	text := ""
	for e, err := range w.log().Follow(w.t.Context(), 0) {
		if err != nil {
			w.t.Error(err)
			return
		}
		if e.Type != tapedeck.TextMessageContent {
			continue
		}
		d, err := payload.DecodeAs[payload.TextMessageContent](e)
		if err != nil {
			w.t.Error(err)
		}
		if text += d.Delta.Whole(); len(text) >= length && strings.HasSuffix(text, end) {
			return
		}
	}
}

func (w *world) status() tapedeck.Status {
	w.t.Helper()
	info, err := w.log().Info(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if len(info.Runs) > 0 && info.Status != tapedeck.StatusRunning {
		w.t.Errorf("runs %v are open in status %s", info.Runs, info.Status)
	}
	return info.Status
}

func check[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%v\nwant\n%v", what, got, want)
	}
}
