package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newInbox(e *env) *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:   "inbox",
		Short: "List the questions of all sessions that wait for people",
		Long: `Inbox lists the questions for which runs wait, over all sessions, the oldest first, each
with its session and with the command, the changes and the files that it is about.

With --follow it goes on, and prints each new question. At a terminal you then answer
the questions one after the other. Elsewhere, and later, answer one with:
tapedeck answer SESSION PERMISSION OPTION`,
		Example: `  tapedeck inbox
  tapedeck inbox --follow`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.withExisting(c.Context(), func(conn *connection) error {
				b := &inbox{env: e, client: conn, desk: &desk{env: e, client: conn}}
				if !follow {
					return b.list(c.Context())
				}
				defer b.desk.close()
				return b.follow(c.Context(), time.NewTicker(inboxPause).C)
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on, and ask each new question")
	return c
}

// inboxPause is how long a followed inbox waits between two requests.
const inboxPause = 2 * time.Second

// An inbox shows the questions of all sessions.
type inbox struct {
	*env
	client *connection
	desk   *desk
	shown  []inboxKey // the questions that wait and were printed
}

// An inboxKey identifies a question.
type inboxKey struct {
	session, id string
	offset      int64
}

func keyOf(q *api.InboxQuestion) inboxKey {
	return inboxKey{q.Session.ID, q.Question.ID, q.Question.Offset}
}

// all returns the questions of all pages, oldest first.
func (b *inbox) all(ctx context.Context) ([]api.InboxQuestion, error) {
	var all []api.InboxQuestion
	for cursor := ""; ; {
		page, err := b.client.Inbox(ctx, cursor, 1000)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Questions...)
		if cursor = page.Next; cursor == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}

func (b *inbox) list(ctx context.Context) error {
	all, err := b.all(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if err := b.print(&all[i]); err != nil {
			return err
		}
	}
	if len(all) == 0 && !b.json {
		fmt.Fprintln(b.stderr, "nothing waits for you")
	}
	return nil
}

// follow prints each question once, and asks it at a terminal, until ctx is done. Each
// tick is a request.
func (b *inbox) follow(ctx context.Context, ticks <-chan time.Time) error {
	for lost := false; ; {
		all, err := b.all(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user has ended it
		case err != nil && tapedeck.KindOf(err) != tapedeck.Unavailable:
			return err
		case err != nil && !lost:
			b.notice("the server does not respond; trying again")
		}
		if lost = err != nil; !lost {
			if err := b.update(ctx, all); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}

// update prints the questions that are new, and forgets those that no longer wait.
func (b *inbox) update(ctx context.Context, all []api.InboxQuestion) error {
	var now []inboxKey
	for i := range all {
		now = append(now, keyOf(&all[i]))
	}
	for _, k := range b.shown {
		if !slices.Contains(now, k) {
			b.desk.answered(k.session, k.id)
		}
	}
	before := b.shown
	b.shown = now
	for i := range all {
		if slices.Contains(before, now[i]) {
			continue
		}
		if err := b.print(&all[i]); err != nil {
			return err
		}
		if err := b.ask(ctx, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// ask gives a question to the desk, if a user is at a terminal.
func (b *inbox) ask(ctx context.Context, i *api.InboxQuestion) error {
	in, ok := b.stdin.(*os.File)
	if b.json || !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	q, err := questionOf(&i.Question)
	if err == nil {
		b.desk.asked(ctx, asked{Question: q, session: i.Session.ID, offset: i.Question.Offset})
	}
	return err
}

func (b *inbox) print(i *api.InboxQuestion) error {
	if b.json {
		return b.printJSON(i)
	}
	p := b.pen()
	s := tapedeck.Session{Title: i.Session.Title}
	if err := p.Printf("%s  %s\n", p.Paint(terminal.Bold, terminal.Brief(titleOf(s), 60)), p.Paint(terminal.Dim,
		fmt.Sprintf("%s · for %s", i.Session.ID, age(time.Since(i.Question.StartedAt.Time))))); err != nil {
		return err
	}
	q, err := questionOf(&i.Question)
	if err != nil {
		return err
	}
	return b.printPermission(&q, i.Question.Offset)
}
