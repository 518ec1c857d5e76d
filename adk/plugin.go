package adk

import (
	"context"
	"errors"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck/payload"
)

// endTimeout is how long the end of a run may take to be stored, also if its caller has left.
const endTimeout = 10 * time.Second

// Codes of runs that the agent has not ended itself.
const (
	// CodeModelError is the error code of a run that failed because a call of the model
	// failed.
	CodeModelError = "model_error"

	// CodeIncomplete is the code of a run that stopped before a final response: the agent
	// returned an error, or its caller stopped listening.
	CodeIncomplete = "incomplete"
)

// An attendance is an invocation that the plugin watches.
type attendance struct {
	key        key
	invocation string
}

// Plugin returns the plugin for the runners that use this service. It appends the text of
// partial events, so followers see it while the model writes it, and it ends each run when
// its invocation ends: as cancelled if the context was cancelled, with [CodeModelError] if
// a model call failed. It changes nothing that the agent does.
//
// List it after plugins that change events: ADK shows it no event that one of those has
// changed, so text that they remove is not streamed.
func (s *Service) Plugin() (*plugin.Plugin, error) {
	return plugin.New(plugin.Config{
		Name: "tapedeck",
		BeforeRunCallback: func(ctx agent.InvocationContext) (*genai.Content, error) {
			s.attend(ctx)
			return nil, nil
		},
		OnEventCallback: func(ctx agent.InvocationContext, event *session.Event) (*session.Event, error) {
			if c := s.attendedBy(keyIn(ctx.Session()), ctx.InvocationID()); c != nil && event != nil && event.Partial {
				c.push(ctx, event)
			}
			return nil, nil
		},
		OnModelErrorCallback: func(ctx agent.Context, _ *model.LLMRequest, failure error) (*model.LLMResponse, error) {
			// The context of a callback has no session, only its names.
			if c := s.attendedBy(key{ctx.AppName(), ctx.UserID(), ctx.SessionID()}, ctx.InvocationID()); c != nil {
				s.modelFailed(ctx, c, ctx.InvocationID(), failure)
			}
			return nil, nil
		},
		AfterRunCallback: s.afterRun,
	})
}

// attend begins to watch an invocation of a session of this service.
func (s *Service) attend(ctx agent.InvocationContext) {
	c, ok := ctx.Session().(*conversation)
	if !ok || c.service != s {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attended[attendance{c.key, ctx.InvocationID()}] = c
}

// keyIn returns the names of a session, which ADK may have wrapped.
func keyIn(s session.Session) key {
	if s == nil {
		return key{}
	}
	return key{s.AppName(), s.UserID(), s.ID()}
}

// attendedBy returns the session of an invocation, if the plugin watches it, else nil.
func (s *Service) attendedBy(k key, invocation string) *conversation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attended[attendance{k, invocation}]
}

// attends reports whether the plugin watches an invocation of c.
func (s *Service) attends(c *conversation, invocation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attended[attendance{c.key, invocation}] == c
}

// modelFailed notes that a model call failed. Its text may have secrets, such as the
// address with a key, so only the logger gets it.
func (s *Service) modelFailed(ctx context.Context, c *conversation, invocation string, failure error) {
	if ctx.Err() != nil {
		return // a cancel is no failure of the model
	}
	s.logger.Warn("a model call of ADK failed", "session", c.log, "invocation", invocation, "error", failure)
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.run != nil && c.run.invocation == invocation {
		r := c.run.clone()
		r.failed = &payload.RunError{Code: CodeModelError, Message: "the model call failed"}
		c.run = r
	}
}

// afterRun ends the run of an invocation.
func (s *Service) afterRun(ctx agent.InvocationContext) {
	c := s.attendedBy(keyIn(ctx.Session()), ctx.InvocationID())
	if c == nil {
		return
	}
	s.mu.Lock()
	delete(s.attended, attendance{c.key, ctx.InvocationID()})
	s.mu.Unlock()
	if err := c.deltas.settle(true); err != nil && !isStopped(err) {
		s.logger.Warn("text of an ADK model could not be streamed", "session", c.log, "error", err)
	}
	cancelled := errors.Is(ctx.Err(), context.Canceled)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := c.write(bounded, func() (*builder, error) { return c.ending(ctx.InvocationID(), cancelled), nil })
	if err != nil && !isStopped(err) && !missing(err) {
		s.logger.Warn("the end of an ADK run could not be stored; its lease ends it", "session", c.log, "error", err)
	}
}

// ending returns the events that end the run of an invocation, none if it is not open.
func (c *conversation) ending(invocation string, cancelled bool) *builder {
	if c.run == nil || c.run.invocation != invocation {
		return &builder{c: c, r: c.run}
	}
	b := c.newBuilder(invocation, c.key.app)
	switch {
	case cancelled:
		b.close()
		b.finish(payload.Outcome{Type: payload.OutcomeCancelled})
		b.r = nil
		return b
	case b.r.failed == nil && !b.r.final && len(b.r.waiting) == 0:
		b.r.failed = &payload.RunError{Code: CodeIncomplete, Message: "the run stopped before the agent's final response"}
	}
	b.end()
	return b
}
