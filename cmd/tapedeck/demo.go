package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// demoLabel marks the sessions of the demo.
const demoLabel = "demo"

// demoMaxEvents is the length at which the live session is recreated.
const demoMaxEvents = 50_000

// demoLive is the id of the session that is always live.
const demoLive = "demo_live"

// startDemo creates the sessions of the demo, unless they exist, and keeps one of them
// live until stop is called or ctx is done. url is where the app is served. It returns the
// id of the live session.
func startDemo(ctx context.Context, a *app, url string) (live string, stop func(), err error) {
	var asks api.Started // the run whose agent asks for permission
	for _, d := range []struct{ id, title, agent, task string }{
		{"demo_hello", "A first hello", "hello", "Say hello"},
		{"demo_failed", "A run that fails", "fail", "Do something that cannot work"},
		{demoTinker, "Real tools on real files", "tinker", tinkerTask},
	} {
		if asks, err = demoOnce(ctx, a, d.id, d.title, d.agent, d.task); err != nil {
			return "", nil, err
		}
	}
	if err := demoSession(ctx, a, demoLive, "Always live"); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		all.Go(func() { keepLive(ctx, a) })
		all.Go(func() {
			if err := demoProtocols(ctx, a, url); err != nil && ctx.Err() == nil {
				a.options.logger.Warn("the demo could not use the other protocols", "error", err)
			}
		})
		all.Go(func() {
			if err := demoWorkflow(ctx, a, url); err != nil && ctx.Err() == nil {
				a.options.logger.Warn("the demo could not start its workflow", "error", err)
			}
		})
		if asks.Session != "" {
			all.Go(func() {
				if err := a.permit(ctx, asks); err != nil && ctx.Err() == nil {
					a.options.logger.Warn("the demo could not answer its agent", "error", err)
				}
			})
		}
		all.Wait()
	}()
	return demoLive, func() { cancel(); <-done }, nil
}

// demoSession creates a session unless it exists.
func demoSession(ctx context.Context, a *app, id, title string) error {
	_, err := a.Session(id).Info(ctx)
	if tapedeck.KindOf(err) != tapedeck.NotFound {
		return err
	}
	_, err = a.Create(ctx, api.NewSession{ID: id, Title: title, Labels: map[string]string{demoLabel: "true"}, Actor: "demo"})
	return err
}

// demoOnce creates a session with one run. If the run exists from an earlier start, it
// returns the zero value.
func demoOnce(ctx context.Context, a *app, id, title, agent, task string) (api.Started, error) {
	if err := demoSession(ctx, a, id, title); err != nil {
		return api.Started{}, err
	}
	s, err := a.Session(id).Info(ctx)
	if err != nil || s.Head > 1 {
		return api.Started{}, err
	}
	return a.Run(ctx, api.Task{Session: id, Agent: agent, Text: task, Actor: "demo"})
}

// keepLive runs one task after the other in the live session.
func keepLive(ctx context.Context, a *app) {
	tasks := []string{"Find out why the build is red and fix it", "Write the release notes", "Make the tests faster"}
	for i := 0; ctx.Err() == nil; i++ {
		pause := 3 * time.Second
		if err := liveTurn(ctx, a, tasks[i%len(tasks)]); err != nil && ctx.Err() == nil {
			a.options.logger.Warn("the live session of the demo failed; trying again", "error", err)
			pause = 5 * time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// liveTurn runs one task in the live session and waits for its end. It recreates a long
// session, so that the demo stays small.
func liveTurn(ctx context.Context, a *app, task string) error {
	s, err := a.Session(demoLive).Info(ctx)
	if err == nil && s.Head > demoMaxEvents && len(s.Runs) == 0 {
		err = a.Session(demoLive).Delete(ctx)
	}
	if err != nil && tapedeck.KindOf(err) != tapedeck.NotFound {
		return err
	}
	if err := demoSession(ctx, a, demoLive, "Always live"); err != nil {
		return err
	}
	started, err := a.Run(ctx, api.Task{Session: demoLive, Agent: "coder", Text: task, Actor: "demo", Config: json.RawMessage(`{}`)})
	if err != nil {
		return err
	}
	return a.waitFor(ctx, started)
}

// waitFor waits until an invocation has ended.
func (a *app) waitFor(ctx context.Context, s api.Started) error {
	for e, err := range a.Follow(ctx, s.Session, s.Offset) {
		if err != nil {
			return err
		}
		if e.Invocation == s.Invocation && (e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError) {
			return nil
		}
	}
	return nil
}
