package engine

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
)

// newPrompt returns the system text that the model of an agent gets, if the log
// of the thread does not say so already; nil if there is nothing to store.
func (e *Engine) newPrompt(ctx context.Context, s *tapedeck.Session, thread string, agent *Agent, config json.RawMessage) (*string, error) {
	runner, ok := agent.Runner.(runner.Instructed)
	if !ok {
		return nil, nil
	}
	text, err := runner.Instructions(config)
	if err != nil {
		return nil, nil //nolint:nilerr // the run fails with it, and says so
	}
	known := ""
	if s.Head > 1 { // else there is only its beginning
		now, err := e.views.Snapshot(ctx, s.ID, view.Query{At: s.Head, Thread: thread, Limit: 1})
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
