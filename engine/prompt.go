package engine

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
)

// newPrompt returns the system text that the model of an agent gets. It returns nil if
// the log of the thread already has that text.
func (e *Engine) newPrompt(ctx context.Context, s *tapedeck.Session, thread string, agent *Agent, config json.RawMessage) (*string, error) {
	runner, ok := agent.Runner.(runner.Instructed)
	if !ok {
		return nil, nil
	}
	text, err := runner.Instructions(config)
	if err != nil {
		return nil, err
	}
	known := ""
	if s.Head > 1 { // a shorter session has only its first event
		now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: new(s.Head), Thread: thread, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(now.Threads) > 0 && now.Threads[0].Prompt != nil {
			known = now.Threads[0].Prompt.Digest
		}
	}
	if known == payload.PromptDigest(text) || known == "" && text == "" {
		return nil, nil
	}
	return &text, nil
}
