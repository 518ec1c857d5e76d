package a2a

import (
	"cmp"
	"context"
	"errors"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// rewind takes a session back to what it was before an invocation. Open runs are cancelled,
// and no agent is called. The answer is one task whose history is the active conversation. A
// rewind that is refused is a failed task, which says why.
func (c *call) rewind(ctx context.Context, m *sdk.Message, before string) (sent, error) {
	if m.ContextID == "" {
		none := tapedeck.NewID("ses_") // a task is in some context
		return c.refusedRewind(ctx, none, tapedeck.Errorf(tapedeck.Invalid, "a rewind needs the contextId of its session"))
	}
	done, err := c.rewindSession(ctx, m.ContextID, before)
	if err != nil {
		return c.refusedRewind(ctx, m.ContextID, err)
	}
	f, err := c.load(ctx, c.refOf(done.Session, done.Marker), done.Offset+1)
	return sent{fold: f, from: done.Offset + 1, began: done.Offset + 1, whole: true}, err
}

// rewindSession rewinds a session. If it is just as this rewind has left it, the result is
// that of then: the answer may have been lost, or a user has clicked twice.
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
	done, err := c.Verbs.Rewind(ctx, api.Rewind{Session: session, BeforeInvocation: before})
	if tapedeck.KindOf(err) != tapedeck.Conflict {
		return done, err
	}
	last, ok, other := c.lastRewind(ctx, session, before)
	if other != nil || !ok {
		return done, cmp.Or(other, err)
	}
	return api.Rewound{Session: session, Marker: last.Marker, Offset: last.Offset, To: last.To}, nil
}

// lastRewind returns the jump that is the newest event of a session, if it has reverted
// everything from an invocation on.
func (c *call) lastRewind(ctx context.Context, session, before string) (tapedeck.Jump, bool, error) {
	s, err := c.Sessions.Head(ctx, session)
	if err != nil || s.LastJump == 0 || s.LastJump+1 != s.Head {
		return tapedeck.Jump{}, false, err
	}
	t, err := c.Views.Timeline(ctx, session, s.Head)
	if err != nil {
		return tapedeck.Jump{}, false, err
	}
	first, found, err := c.Views.FindInvocation(ctx, session, before)
	j, ok := t.Before("", s.Head)
	return j, ok && found && j.Thread == "" && j.To == first, err
}

// refusedRewind returns the failed task of a rewind that is refused. It is not stored, and
// it has no history: a page that finds one in a task replaces its conversation with it, and
// takes that for success.
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
