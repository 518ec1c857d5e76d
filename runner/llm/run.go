package llm

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/chat"
)

// A run is one invocation.
type run struct {
	runner  *Runner
	config  Config
	ctx     context.Context
	in      *tapedeck.Invocation
	yield   func(tapedeck.Event) error // an error if nobody listens any more
	memory  *memory
	toolbox toolbox
	turn    int
}

// emit yields an event and keeps it in mind.
func (s *run) emit(p payload.Payload) error {
	e := payload.NewEvent(p)
	e.Turn = s.turn
	s.memory.add(e)
	return s.yield(e)
}

// started tells of a process and waits until that is durable, so that a server
// that comes after us can end it. An error means that it must not begin.
func (s *run) started(d payload.AgentStarted) error {
	if d.Started == "" {
		return nil // the system does not tell
	}
	if err := s.emit(d); err != nil || s.in.Stored == nil {
		return err
	}
	return s.in.Stored(s.ctx)
}

func (s *run) loop() error {
	for s.turn = 1; s.turn <= s.config.MaxTurns; s.turn++ {
		calls, err := s.ask()
		if err != nil || len(calls) == 0 {
			return err
		}
		for _, c := range calls {
			if err := s.act(c); err != nil {
				return err
			}
		}
	}
	return tapedeck.Errorf(tapedeck.Limited, "the agent has called its model %d times and is not done", s.config.MaxTurns)
}

// ask calls the model once and tells what it says, as it says it. It returns the
// calls that are to be carried out.
func (s *run) ask() ([]*call, error) {
	r := chat.Request{
		Model: s.config.Model, Messages: s.memory.messages(),
		Functions: s.toolbox.functions(), Parameters: s.runner.options.Parameters,
	}
	a := &answer{run: s, byIndex: map[int]*call{}}
	for d, err := range s.runner.client.Stream(s.ctx, r) {
		if err != nil {
			return nil, err
		}
		if err := a.take(d); err != nil {
			return nil, err
		}
	}
	return a.calls, a.why()
}

// report tells what a model call has used.
func (s *run) report(u *chat.Usage) error {
	d := payload.UsageReported{TokenCounts: u.TokenCounts, CostUSD: u.CostUSD}
	if d.Model == "" {
		d.Model = s.config.Model
	}
	d.Provider = s.runner.options.Name
	if d.CostUSD == nil {
		d.CostUSD = s.cost(&d.TokenCounts)
	}
	return s.emit(d)
}

// cost returns what tokens cost, nil if that is not known.
func (s *run) cost(c *payload.TokenCounts) *float64 {
	p, ok := s.runner.options.Prices[c.Model]
	if !ok {
		p, ok = s.runner.options.Prices[s.config.Model] // providers answer with a longer name
	}
	if !ok || c.InputTokens == nil || c.OutputTokens == nil {
		return nil
	}
	cost := float64(*c.InputTokens)*p.Input + float64(*c.OutputTokens)*p.Output
	if c.CachedInputTokens != nil && p.CachedInput != nil {
		cost += float64(*c.CachedInputTokens) * (*p.CachedInput - p.Input)
	}
	if c.CacheWriteInputTokens != nil && p.CacheWrite != nil {
		cost += float64(*c.CacheWriteInputTokens) * (*p.CacheWrite - p.Input)
	}
	cost /= 1e6
	return &cost
}
