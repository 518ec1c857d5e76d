package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// jump runs a verb that reverts events and prints what it did. done is the past
// tense of the verb, such as "rewound".
func (e *env) jump(ctx context.Context, done string, verb func(context.Context, *connection) (api.Rewound, error)) error {
	return e.withExisting(ctx, func(conn *connection) error {
		r, err := verb(ctx, conn)
		if err != nil {
			return err
		}
		return e.printJump(done, &r)
	})
}

func (e *env) printJump(done string, r *api.Rewound) error {
	if e.json {
		return e.printJSON(r)
	}
	for _, inv := range r.Cancelled {
		fmt.Fprintf(e.stderr, "cancelled %s first\n", inv)
	}
	if _, err := io.WriteString(e.stdout, jumpSentence(done, r)+"\n"); err != nil {
		return err
	}
	if r.Marker != "" {
		fmt.Fprintf(e.stderr, "undo with: tapedeck undo %s %s\n", r.Session, r.Marker)
	}
	return nil
}

// jumpSentence says which events were reverted or restored.
func jumpSentence(done string, r *api.Rewound) string {
	where := r.Session
	if r.Thread != "" {
		where = fmt.Sprintf("thread %s of %s", r.Thread, r.Session)
	}
	switch {
	case r.Marker == "":
		return fmt.Sprintf("nothing to revert: %s has no active events from offset %d on", where, r.To)
	case r.Undoes != "":
		return fmt.Sprintf("undid %s: %s is again as it was before offset %d", r.Undoes, where, r.To)
	case r.To == 0:
		return fmt.Sprintf("%s %s: all events are reverted", done, where)
	}
	return fmt.Sprintf("%s %s: the events from offset %d on are reverted", done, where, r.To)
}

// forceHint replaces the hint of a refused jump, which is for programs, by one that
// names commands.
func (c *connection) forceHint(ctx context.Context, session string, err error) error {
	var te *tapedeck.Error
	if !errors.As(err, &te) || te.Kind != tapedeck.Conflict || !strings.Contains(te.Hint, "force") {
		return err
	}
	var newest tapedeck.Jump
	s, failed := c.Session(ctx, session)
	if failed == nil {
		failed = c.jumps(ctx, session, s.Head, func(j tapedeck.Jump) {
			if !j.Attempt {
				newest = j
			}
		})
	}
	if failed != nil { // the refusal matters more
		return err
	}
	return tapedeck.Errorf(te.Kind, "%s", te.Message).Because(err).
		WithHint("undo the newest of them with: tapedeck undo %s %s; or pass --force", session, newest.Marker)
}
