package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// FollowOptions say what to follow and what to be told of.
type FollowOptions struct {
	PageOptions      // From and the filters; the rest is ignored
	Until       bool // end after the terminal event of Invocation or, if that is "", of the next run
	OnCaughtUp  func(next int64)
	OnReconnect func(attempt int, err error) // before each wait; attempt counts from 1 since the last event
	// Locate, if not nil, returns the client to reconnect through, before each
	// attempt; nil keeps the last one. A server that is restarted may have
	// another address.
	Locate func() *Client
}

// Follow yields the events of a session, those that are there and those to come,
// each exactly once, through any number of lost connections and restarts of the
// server: it reconnects from its cursor for ever, with a back-off of 100 ms to
// 5 s, until ctx is done, the session or the run ends, or the server refuses. A refusal is
// any status but 408, 429 and those from 500 on, also one that a proxy answers. If the
// session is another one after a reconnect, because it was recreated or restored from a
// backup, the error is [tapedeck.Replaced].
func (c *Client) Follow(ctx context.Context, session string, o FollowOptions) iter.Seq2[tapedeck.Record, error] {
	return func(yield func(tapedeck.Record, error) bool) {
		f := follow{client: c, session: session, options: o, cursor: o.From}
		for {
			err := f.connect(ctx, yield)
			switch {
			case f.done:
				return
			case ctx.Err() != nil:
				yield(tapedeck.Record{}, ctx.Err())
				return
			case err != nil && !passing(err):
				yield(tapedeck.Record{}, err)
				return
			}
			f.wait(ctx, err)
		}
	}
}

type follow struct {
	client  *Client
	session string
	options FollowOptions
	cursor  int64  // the next offset wanted
	life    string // the incarnation of the session, as a cursor has it: @3; "" if it is not known yet
	attempt int
	done    bool
}

// passing reports whether an error may pass by itself.
func passing(err error) bool {
	switch tapedeck.KindOf(err) {
	case tapedeck.Unavailable, tapedeck.Internal, tapedeck.Limited:
		return true
	}
	return false
}

// backOff returns how long to wait before the next connection.
func backOff(attempt int) time.Duration {
	return min(100*time.Millisecond<<min(attempt-1, 6), 5*time.Second)
}

func (f *follow) wait(ctx context.Context, err error) {
	f.attempt++
	if f.options.OnReconnect != nil {
		f.options.OnReconnect(f.attempt, err)
	}
	select {
	case <-time.After(backOff(f.attempt)):
	case <-ctx.Done():
	}
	if f.options.Locate != nil {
		if c := f.options.Locate(); c != nil {
			f.client = c
		}
	}
}

// connect follows over one connection.
func (f *follow) connect(ctx context.Context, yield func(tapedeck.Record, error) bool) error {
	q := f.options.query()
	q.Del("limit")
	q.Set("fromOffset", strconv.FormatInt(f.cursor, 10)+f.life)
	if f.options.Until {
		q.Set("until", "terminal")
		if f.cursor > f.options.From { // the connection may have broken after the terminal event: the server looks at the last one
			q.Del("fromOffset")
			q.Set("lastEventId", strconv.FormatInt(f.cursor-1, 10)+f.life)
		}
	}
	resp, err := f.client.send(ctx, http.MethodGet, sessionPath(f.session, "stream"), &request{query: q}, []string{"text/event-stream"})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent { // nothing left to come
		f.done = true
		return nil
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return tapedeck.Errorf(tapedeck.Unsupported, "the server at %s answered with %q, not with a stream of events", f.client.address(), kind).
			WithHint("is a Tapedeck server at this address?")
	}
	for frame, err := range sse.Read(resp.Body) {
		if err != nil {
			return unreachable(err)
		}
		if f.take(frame, yield); f.done {
			return nil
		}
	}
	return unreachable(io.ErrUnexpectedEOF)
}

func unreachable(err error) error {
	return tapedeck.Errorf(tapedeck.Unavailable, "the connection was lost").Because(err)
}

func (f *follow) take(frame sse.Frame, yield func(tapedeck.Record, error) bool) {
	f.attempt = 0
	switch frame.Event {
	case "caught-up":
		var at api.CaughtUp
		if json.Unmarshal(frame.Data, &at) == nil {
			f.learn(at.Cursor)
		}
		if f.options.OnCaughtUp != nil {
			f.options.OnCaughtUp(f.cursor)
		}
	case "end":
		f.done = true
		var end api.StreamEnd
		if json.Unmarshal(frame.Data, &end) == nil && end.Reason == api.EndDeleted {
			yield(tapedeck.Record{}, tapedeck.Errorf(tapedeck.NotFound, "session %s was deleted", f.session))
		}
	case "", "message":
		offset, err := strconv.ParseInt(f.learn(frame.ID), 10, 64)
		if err != nil {
			f.done = true
			yield(tapedeck.Record{}, tapedeck.Errorf(tapedeck.Internal, "the server sent an event without an offset").Because(errors.New(frame.ID)))
			return
		}
		if offset < f.cursor { // a proxy's replay; it was yielded before
			return
		}
		f.cursor = offset + 1
		f.done = !yield(tapedeck.Record{Offset: offset, Data: frame.Data}, nil)
	}
}

// learn notes the incarnation in an id or a cursor, and returns the offset in it.
func (f *follow) learn(id string) (offset string) {
	offset, life, found := strings.Cut(id, "@")
	if found {
		f.life = "@" + life
	}
	return offset
}
