package adk

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/adk/v2/session"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// maxTries is how often an append is tried while others append to the session, such as
// people who bookmark.
const maxTries = 50

// append stores an event and adds it to the copy.
func (c *conversation) append(ctx context.Context, event *session.Event) error {
	_ = c.deltas.settle(false) // text that could not be streamed is in the event
	kept := withoutTemp(event)
	attended := c.service.attends(c, event.InvocationID)
	var e *encoded
	first, err := c.appended(ctx, func() (b *builder, err error) {
		if e, err = c.encode(kept, attended); err != nil {
			return nil, err
		}
		return e.builder, nil
	})
	if err != nil {
		return err
	}
	c.add(event, kept)
	if e.meta.Shares {
		if err := c.service.share(ctx, c.key, splitDelta(kept.Actions.StateDelta), c.cause(first+int64(e.carrier))); err != nil {
			return err
		}
	}
	return c.title(ctx, event)
}

// cause returns the id of the change of shared state that the event at an offset makes.
func (c *conversation) cause(offset int64) string {
	return c.log + "\x00" + strconv.FormatInt(offset, 10)
}

// title gives a session without a title the first line of the user's first words.
func (c *conversation) title(ctx context.Context, event *session.Event) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.titled || event.Author != userAuthor || event.Content == nil {
		return nil
	}
	var text strings.Builder
	for _, p := range event.Content.Parts {
		if p != nil {
			text.WriteString(p.Text)
		}
	}
	title := titleOf(text.String())
	if title == "" {
		return nil
	}
	c.titled = true
	return c.service.store.Rename(ctx, c.log, api.Rename{Title: &title, Actor: userActor(c.key.user)})
}

// titleOf returns the first line of a text as a title, "" if it cannot be one. It is the
// rule of package engine, which by this rule finds the title of a message that is erased.
func titleOf(text string) string {
	const most = 80
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if r := []rune(line); len(r) > most {
		line = string(r[:most-1]) + "…"
	}
	if tapedeck.CheckName("the title", line) != nil {
		return ""
	}
	return line
}

// write appends what build returns, see [conversation.appended].
func (c *conversation) write(ctx context.Context, build func() (*builder, error)) error {
	_, err := c.appended(ctx, build)
	return err
}

// appended appends the events that build returns, and returns the offset of the first. If
// others have appended meanwhile, it learns what, and calls build again. If they have
// changed what ADK sees, it refuses.
func (c *conversation) appended(ctx context.Context, build func() (*builder, error)) (int64, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for range maxTries {
		b, err := build()
		if err != nil {
			return 0, err
		}
		if c.stopped != "" && b.invocation == c.stopped {
			return 0, tapedeck.Errorf(tapedeck.Conflict, "the run %s was cancelled", c.stopped)
		}
		if len(b.out) == 0 {
			c.run = b.r
			return c.next, nil
		}
		next := c.next
		done, err := c.service.store.Append(ctx, tapedeck.Append{Session: c.log, Events: b.out, Expect: &next})
		if err == nil {
			c.commit(b, done.Next)
			return done.First, nil
		}
		if missing(err) {
			return 0, tapedeck.Errorf(tapedeck.NotFound, "there is no session %s any more", c.key).Because(err)
		}
		if tapedeck.KindOf(err) != tapedeck.Conflict {
			return 0, err
		}
		if learned := c.catchUp(ctx); learned != nil {
			return 0, learned
		}
		if c.next == next {
			return 0, err // the log has not changed, so it would be refused again
		}
	}
	return 0, tapedeck.Errorf(tapedeck.Unavailable, "others keep appending to the session %s", c.key).WithHint("try again")
}

// commit notes what was appended.
func (c *conversation) commit(b *builder, next int64) {
	c.next, c.run = next, b.r
	for i := range b.out {
		if b.out[i].Type == tapedeck.RunStarted {
			c.runs[b.out[i].Invocation] = true
		}
	}
	for _, m := range b.calls {
		c.used[m.id], c.calls[m.adk] = true, m.id
	}
}

// errStale refuses an append to a copy that lacks events.
func (c *conversation) errStale() error {
	return tapedeck.Errorf(tapedeck.Conflict, "the session %s has changed since it was read", c.key).WithHint("get it again, then continue")
}

// catchUp reads what others have appended. It is an error if they have changed what ADK
// sees.
func (c *conversation) catchUp(ctx context.Context) error {
	for e, err := range c.service.store.Events(ctx, c.log, c.next) {
		if err != nil {
			return err
		}
		if _, jumps := e.Jump(); jumps {
			return c.errStale()
		}
		if s, ok := storedIn(&e); ok && (s.Event || e.Type == tapedeck.RunStarted) {
			return c.errStale()
		}
		c.next = e.Offset + 1
		if c.run != nil && e.Invocation == c.run.id && (e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError) {
			c.ended(&e)
		}
	}
	return nil
}

// ended notes that someone else has ended the run. After a cancel its invocation is over.
// A lease that has expired says only that the agent was silent, so another run continues.
func (c *conversation) ended(e *tapedeck.Event) {
	p, err := payload.DecodeAs[payload.RunError](*e)
	if e.Type != tapedeck.RunError || err != nil || p.Code != tapedeck.CodeLeaseExpired {
		c.stopped = c.run.invocation
	}
	c.run = nil
}

// isStopped reports whether an error is about the log having changed: another run of the
// session, a rewind or a cancel. Then the invocation has nothing to append any more.
func isStopped(err error) bool {
	var refused *tapedeck.AppendError
	return tapedeck.KindOf(err) == tapedeck.Conflict && !errors.As(err, &refused)
}
