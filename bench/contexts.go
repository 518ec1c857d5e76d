package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/instance"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/view"
)

// contextLengths has the lengths of the compared contexts, in events.
var contextLengths = [...]int{10, 9_000}

// measureContexts compares an append to a long context of an instance with one to a short
// context, and with an append of the same event without the repository. They are made in
// turn.
func measureContexts(ctx context.Context, r *report) (err error) {
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	views := projection.New(projection.Options{Store: s})
	e := engine.New(engine.Options{Store: s, Views: views})
	defer func() { err = errors.Join(err, e.Shutdown(ctx)) }()
	contexts := instance.New(e, views, s)
	var steps []func() error // to the plain session, to the short context and to the long one
	content := json.RawMessage(`{"role":"user","content":"more"}`)
	for n, length := range append([]int{0}, contextLengths[:]...) {
		id := fmt.Sprint("s", n)
		if _, err := e.Create(ctx, api.NewSession{ID: id}); err != nil {
			return err
		}
		i, err := contexts.CreateInstance(ctx, id, "coder", "")
		if err != nil {
			return err
		}
		if n == 0 {
			added := tapedeck.Event{Type: tapedeck.MessageAdded, Thread: i.Thread, Data: json.RawMessage(`{"message":{"id":"m","role":"user","content":"more"}}`)}
			steps = append(steps, func() error {
				_, err := e.Append(ctx, tapedeck.Append{Session: id, Events: []tapedeck.Event{added}})
				return err
			})
			continue
		}
		more := func() error {
			_, err := contexts.AppendEvent(ctx, view.Ref{Session: id, ID: i.ID}, view.UserMessage, content, "")
			return err
		}
		for range length {
			if err := more(); err != nil {
				return err
			}
		}
		steps = append(steps, more)
	}
	took := make([][]float64, len(steps))
	for range 200 {
		for n, step := range steps {
			began := time.Now()
			if err := step(); err != nil {
				return err
			}
			took[n] = append(took[n], float64(time.Since(began).Microseconds()))
		}
	}
	plain, short, long := quantile(took[0], .5), quantile(took[1], .5), quantile(took[2], .5)
	r.alone("contexts: an append to 9,000 events, compared with 10", fmt.Sprintf("%.2f× (%.1f ms)", long/short, long/1000), "≤ 1.5×", long <= 1.5*short)
	r.alone("contexts: an append to 9,000 events, compared with a plain append", fmt.Sprintf("%.2f× (%.1f ms)", long/plain, long/1000), "≤ 1.5×", long <= 1.5*plain)
	return nil
}
