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

// jump does a verb that takes events back, and says what it did.
func (e *env) jump(ctx context.Context, verb func(context.Context, *connection) (api.Rewound, error)) error {
	return e.reading(ctx, func(conn *connection) error {
		done, err := verb(ctx, conn)
		if err != nil {
			return err
		}
		return e.printRewound(&done)
	})
}

func (e *env) printRewound(r *api.Rewound) error {
	if e.json {
		return e.printJSON(r)
	}
	for _, inv := range r.Cancelled {
		fmt.Fprintf(e.stderr, "cancelled %s first\n", inv)
	}
	where := r.Session
	if r.Thread != "" {
		where = fmt.Sprintf("thread %s of %s", r.Thread, r.Session)
	}
	sentence := fmt.Sprintf("%s is as it was before offset %d\n", where, r.To)
	if r.Undoes != "" {
		sentence = fmt.Sprintf("took back %s: in %s, what was active before offset %d is active again\n", r.Undoes, where, r.To)
	}
	_, err := io.WriteString(e.stdout, sentence)
	if r.Marker == "" { // there was nothing to take back
		return err
	}
	fmt.Fprintf(e.stderr, "take it back with: tapedeck undo %s %s\n", r.Session, r.Marker)
	return err
}

// forceHint says in words of the command line what to do about a place that was
// reverted before; the server's hint is for programs.
func (c *connection) forceHint(ctx context.Context, session string, err error) error {
	var te *tapedeck.Error
	if !errors.As(err, &te) || te.Kind != tapedeck.Conflict || !strings.Contains(te.Hint, "force") {
		return err
	}
	var newest tapedeck.Jump
	s, failed := c.Session(ctx, session)
	if failed == nil {
		failed = c.jumps(ctx, session, s.Head, func(j tapedeck.Jump) { newest = j })
	}
	if failed != nil { // what was refused counts
		return err
	}
	return tapedeck.Errorf(te.Kind, "%s", te.Message).Because(err).
		WithHint("tapedeck undo %s %s takes the newest of these back, --force goes there all the same", session, newest.Marker)
}
