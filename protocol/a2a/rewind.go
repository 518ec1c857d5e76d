package a2a

import (
	"context"
	"errors"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// rewind takes a session back to what it was before an invocation. No agent is called.
// The answer is one task whose history is the active conversation. A rewind that is
// refused is a failed task, which says why.
func (c *call) rewind(ctx context.Context, m *sdk.Message, before string) (sent, error) {
	switch "" {
	case m.ContextID:
		return sent{}, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "a rewind needs the contextId of its session"))
	case before:
		return sent{}, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "%s is empty", keyRewind))
	}
	done, err := c.rewindSession(ctx, m.ContextID, before)
	if err != nil {
		return c.refusedRewind(ctx, m.ContextID, err)
	}
	f, err := c.rewound(ctx, c.refOf(done.Session, done.Marker), done.Offset+1)
	return sent{fold: f, from: done.Offset + 1, began: done.Offset + 1, whole: true}, err
}

func (c *call) rewindSession(ctx context.Context, session, before string) (api.Rewound, error) {
	s, err := c.Sessions.Head(ctx, session)
	if err != nil {
		return api.Rewound{}, err
	}
	t, err := c.Views.Timeline(ctx, session, s.Head)
	if err != nil {
		return api.Rewound{}, err
	}
	if _, marker := t.Marked(before); marker {
		return api.Rewound{}, tapedeck.Errorf(tapedeck.Conflict, "%s is a rewind, and a rewind cannot be rewound here", before).
			WithHint("undo it with POST /api/v1/sessions/%s/undo", session)
	}
	return c.Verbs.Rewind(ctx, api.Rewind{Session: session, BeforeInvocation: before, IfIdle: true})
}

// refusedRewind returns the failed task of a rewind that is refused. Nothing was
// appended, so the task is not stored; its history is the active conversation.
func (c *call) refusedRewind(ctx context.Context, session string, err error) (sent, error) {
	var e *tapedeck.Error
	if !errors.As(err, &e) || e.Kind == tapedeck.Internal || e.Kind == tapedeck.Unavailable {
		return sent{}, err
	}
	id := tapedeck.NewID("refused_")
	f := newFold(c.refOf(session, id))
	if s, err := c.Sessions.Head(ctx, session); err == nil {
		f.at, f.through = s.Updated, s.Head-1
	}
	said := failure{message: e.Message, hint: e.Hint}
	f.agent, f.state = c.agent.Name, sdk.TaskStateFailed
	f.last = f.message(&tapedeck.Event{}, sdk.MessageRoleAgent, session+divider+id+divider+"error", sdk.NewTextPart(said.sentence()))
	return sent{fold: f, from: f.through + 1, whole: true, refused: true}, nil
}
