package llm

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/chat"
)

// A run is one invocation.
type run struct {
	runner  *Runner
	config  Config
	ctx     context.Context
	in      *tapedeck.Invocation
	yield   func(tapedeck.Event) error // returns errLeft if no more events are wanted
	memory  *memory
	toolbox toolbox
	turn    int
	spoke   bool // the model has said or thought something, or called a tool

	asking  bool             // the model is answering
	heard   []tapedeck.Event // its answer so far, which the memory gets when it is complete
	attempt int              // the number of the attempt at the answer
}

// emit yields an event and adds it to the memory.
func (s *run) emit(p payload.Payload) error {
	e := payload.NewEvent(p)
	e.Turn = s.turn
	if s.asking {
		s.heard = append(s.heard, e)
	} else {
		s.memory.add(e)
	}
	return s.yield(e)
}

// started yields the identity of a process and waits until the event is durable, so that
// a later server can end the process. After an error the process must not begin.
func (s *run) started(d payload.AgentStarted) error {
	if d.Started == "" {
		return nil // this operating system has no identity of a process
	}
	if err := s.emit(d); err != nil || s.in.Stored == nil {
		return err
	}
	return s.in.Stored(s.ctx)
}

func (s *run) loop() error {
	for s.turn = 1; s.turn <= s.config.MaxTurns; s.turn++ {
		if err := s.proceed(); err != nil {
			return err
		}
		if _, err := s.hear(); err != nil {
			return err
		}
		calls, err := s.ask()
		if err != nil {
			return err
		}
		if len(calls) == 0 {
			if heard, err := s.hear(); !heard || err != nil {
				return err
			}
		}
		for _, c := range calls {
			if err := s.execute(c); err != nil {
				return err
			}
		}
	}
	return tapedeck.Errorf(tapedeck.Limited, "the agent has called its model %d times and has not finished", s.config.MaxTurns)
}

// proceed waits until the run may call the model.
func (s *run) proceed() error {
	if s.in.Proceed == nil {
		return nil
	}
	return s.in.Proceed(s.ctx)
}

// hear adds what users have sent to the run meanwhile. It reports whether there was
// anything.
func (s *run) hear() (bool, error) {
	if s.in.Steer == nil {
		return false, nil
	}
	messages, err := s.in.Steer(s.ctx)
	for _, m := range messages {
		s.memory.add(tapedeck.Event{Type: tapedeck.MessageAdded, Data: append(append([]byte(`{"message":`), m...), '}')})
	}
	return len(messages) > 0, err
}

// ask calls the model once and yields its answer while it arrives. It returns the tool
// calls of the answer.
func (s *run) ask() ([]*call, error) {
	r := chat.Request{
		Model: s.config.Model, Messages: s.memory.messages(),
		Functions: s.toolbox.functions(), Parameters: s.runner.options.Parameters,
	}
	a := &answer{run: s, byIndex: map[int]*call{}}
	s.asking, s.heard, s.attempt = true, nil, 1
	for d, err := range s.runner.client.Stream(s.ctx, r) {
		if err == nil && d.Kind == chat.Again {
			a, err = s.again(d.Text.Whole())
		} else if err == nil {
			err = a.add(d)
		}
		if err != nil {
			return nil, err
		}
	}
	s.asking = false
	for _, e := range s.heard {
		s.memory.add(e)
	}
	s.spoke = s.spoke || a.nothing == ""
	return a.calls, a.stopError()
}

// again begins the answer again: its earlier attempt does not count any more.
func (s *run) again(why string) (*answer, error) {
	s.heard = nil
	s.attempt++
	e := tapedeck.Event{Type: tapedeck.AttemptSuperseded, Turn: s.turn, Data: jsonobj.AppendMembers(nil, map[string]json.RawMessage{"reason": jsonobj.AppendJSON(nil, why)})}
	return &answer{run: s, byIndex: map[int]*call{}}, s.yield(e)
}

// report yields the usage of a model call.
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

// cost returns the cost of tokens; nil if it is unknown.
func (s *run) cost(c *payload.TokenCounts) *float64 {
	p, ok := s.runner.options.Prices[c.Model]
	if !ok {
		p, ok = s.runner.options.Prices[s.config.Model] // providers report a longer name
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
