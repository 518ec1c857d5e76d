package rest_test

import (
	"context"
	"fmt"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// The verbs that change which events are active, without the checks of the real engine.

func (g *engine) Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error) {
	if (r.BeforeInvocation == "") == (r.ToOffset == nil) {
		return api.Rewound{}, tapedeck.Errorf(tapedeck.Invalid, "a rewind goes back to one place").WithHint("give either an invocation or an offset")
	}
	to, err := g.offset(ctx, r)
	if err != nil {
		return api.Rewound{}, err
	}
	return g.jump(ctx, r.Session, r.Thread, "rew_", to, func(t payload.RevertFields) payload.Payload {
		return payload.SessionRewound{RevertFields: t, ToOffset: to, BeforeInvocation: r.BeforeInvocation}
	})
}

func (g *engine) offset(ctx context.Context, r api.Rewind) (int64, error) {
	if r.ToOffset != nil {
		return *r.ToOffset, nil
	}
	for ev, err := range tapedeck.Events(ctx, g.Hub, r.Session, 0) {
		if err != nil || ev.Invocation == r.BeforeInvocation {
			return ev.Offset, err
		}
	}
	return 0, tapedeck.Errorf(tapedeck.NotFound, "session %s has no invocation %q", r.Session, r.BeforeInvocation)
}

func (g *engine) Undo(ctx context.Context, u api.Undo) (api.Rewound, error) {
	s, err := g.Head(ctx, u.Session)
	if err != nil {
		return api.Rewound{}, err
	}
	if s.LastJump == 0 {
		return api.Rewound{}, tapedeck.Errorf(tapedeck.Conflict, "there is nothing to undo in session %s", s.ID)
	}
	return g.jump(ctx, s.ID, "", "rew_", s.LastJump, func(t payload.RevertFields) payload.Payload {
		return payload.SessionRewound{RevertFields: t, ToOffset: s.LastJump, Undoes: u.Marker}
	})
}

func (g *engine) Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error) {
	return g.jump(ctx, o.Session, o.Thread, "ovw_", o.FromOffset, func(t payload.RevertFields) payload.Payload {
		return payload.SessionOverwritten{RevertFields: t, FromOffset: o.FromOffset}
	})
}

func (g *engine) Clear(ctx context.Context, c api.Clear) (api.Rewound, error) {
	return g.jump(ctx, c.Session, c.Thread, "clr_", 0, func(t payload.RevertFields) payload.Payload {
		return payload.SessionCleared{RevertFields: t}
	})
}

func (g *engine) jump(ctx context.Context, session, thread, mark string, to int64, say func(payload.RevertFields) payload.Payload) (api.Rewound, error) {
	s, err := g.Head(ctx, session)
	if err != nil {
		return api.Rewound{}, err
	}
	if to < 0 || to > s.Head {
		return api.Rewound{}, tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, so it cannot go back to %d", s.ID, s.Head, to)
	}
	var stopped []string
	for _, run := range s.Runs {
		if _, err := g.Cancel(ctx, session, run.Invocation); err != nil {
			return api.Rewound{}, err
		}
		stopped = append(stopped, run.Invocation)
		s.Head++
	}
	t := payload.RevertFields{Marker: fmt.Sprintf("%s%d", mark, s.Head), Thread: thread, Status: "idle"}
	if s.LastJump > 0 {
		t.Previous = &s.LastJump
	}
	done, err := g.Append(ctx, tapedeck.Append{Session: session, Events: []tapedeck.Event{payload.NewEvent(say(t))}})
	return api.Rewound{Session: session, Marker: t.Marker, Offset: done.First, To: to, Thread: thread, Status: tapedeck.StatusIdle, Cancelled: stopped}, err
}

func (g *engine) Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error) {
	if f.ID == "" {
		f.ID = "ses_fork"
	}
	p, err := g.Head(ctx, f.Parent)
	if err != nil {
		return tapedeck.Session{}, err
	}
	d := payload.SessionForked{Parent: f.Parent, At: p.Head, Copy: f.Copy, Title: p.Title, Owner: f.Owner}
	if f.At != nil {
		d.At = *f.At
	}
	if f.Title != nil {
		d.Title = *f.Title
	}
	done, err := g.Hub.Create(ctx, tapedeck.Spec{ID: f.ID, Parent: f.Parent, ForkAt: &d.At, Events: []tapedeck.Event{payload.NewEvent(d)}})
	if err == nil && !done.New {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s exists", f.ID)
	}
	return done.Session, err
}

func (g *engine) Resume(ctx context.Context, r api.Resume) (api.Started, error) {
	s, err := g.Head(ctx, r.Session)
	if err == nil && s.Status != tapedeck.StatusCancelled {
		err = tapedeck.Errorf(tapedeck.Conflict, "nothing has run on thread main, so there is nothing to resume")
	}
	if err != nil {
		return api.Started{}, err
	}
	return g.Start(ctx, api.Task{Session: r.Session, Thread: r.Thread, Text: "Go on: " + r.Text})
}
