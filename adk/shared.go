package adk

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/adk/v2/session"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// A delta is a change of state, by those who share it. The keys of app and user have lost
// their prefixes.
type delta struct{ app, user, session map[string]any }

// splitDelta splits a change of state by the prefixes of its keys. It drops temporary
// state.
func splitDelta(d map[string]any) delta {
	out := delta{map[string]any{}, map[string]any{}, map[string]any{}}
	for k, v := range d {
		if name, ok := strings.CutPrefix(k, session.KeyPrefixApp); ok {
			out.app[name] = v
		} else if name, ok := strings.CutPrefix(k, session.KeyPrefixUser); ok {
			out.user[name] = v
		} else if !strings.HasPrefix(k, session.KeyPrefixTemp) {
			out.session[k] = v
		}
	}
	return out
}

// shares reports whether other sessions see a part of the change.
func (d *delta) shares() bool { return len(d.app)+len(d.user) > 0 }

// patch returns a change of state as operations of RFC 6902, by key.
func patch(d map[string]any) (json.RawMessage, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	pointer := strings.NewReplacer("~", "~0", "/", "~1")
	ops := make([]operation, 0, len(d))
	for _, k := range slices.Sorted(maps.Keys(d)) {
		ops = append(ops, operation{"add", "/" + pointer.Replace(k), d[k]})
	}
	b, err := json.Marshal(ops)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "a change of state is not JSON: %w", err)
	}
	return b, nil
}

// sharedState returns the state of an app and of a user, under keys with their prefixes.
func (s *Service) sharedState(ctx context.Context, k key) (map[string]any, error) {
	out := map[string]any{}
	for _, scope := range []struct{ prefix, log string }{
		{session.KeyPrefixApp, appLogID(k.app)},
		{session.KeyPrefixUser, userLogID(k.app, k.user)},
	} {
		state, err := s.headState(ctx, scope.log)
		if err != nil {
			return nil, err
		}
		for name, v := range state {
			out[scope.prefix+name] = v
		}
	}
	return out, nil
}

// headState returns the state of a log as of now, an empty one if there is no log.
func (s *Service) headState(ctx context.Context, log string) (map[string]any, error) {
	info, err := s.store.Info(ctx, log)
	if err == nil {
		var state map[string]any
		if state, err = s.stateOf(ctx, log, info.Head); err == nil {
			return state, nil
		}
	}
	if missing(err) {
		return nil, nil
	}
	return nil, err
}

// share stores the parts of a change that other sessions see. cause is the id of the
// change: a second call with it changes nothing.
func (s *Service) share(ctx context.Context, k key, d delta, cause string) error {
	if err := s.shareIn(ctx, appLogID(k.app), k, "app", d.app, cause); err != nil {
		return err
	}
	return s.shareIn(ctx, userLogID(k.app, k.user), k, "user", d.user, cause)
}

// shareIn appends a change of state to the log of an app or a user, and creates that if
// there is none. AG-UI has state in runs only, so the change is a run of its own.
func (s *Service) shareIn(ctx context.Context, log string, k key, scope string, d map[string]any, cause string) error {
	if len(d) == 0 {
		return nil
	}
	ops, err := patch(d)
	if err != nil {
		return err
	}
	id := tapedeck.NewID("inv_")
	events := []tapedeck.Event{
		payload.NewEvent(payload.RunStarted{ThreadID: tapedeck.MainThread, RunID: id}),
		payload.NewEvent(payload.StateDelta{Delta: ops}),
		payload.NewEvent(payload.RunFinished{ThreadID: tapedeck.MainThread, RunID: id}),
	}
	for i := range events {
		events[i].Invocation, events[i].Actor = id, userActor(k.user)
	}
	a := tapedeck.Append{Session: log, Events: events, Producer: &tapedeck.Producer{ID: "adk-" + digest(cause)}}
	_, err = s.store.Append(ctx, a)
	if tapedeck.KindOf(err) != tapedeck.NotFound {
		return err
	}
	n := api.NewSession{ID: log, Title: "State of the app " + k.app, State: json.RawMessage("{}"), Labels: map[string]string{labelState: scope}}
	if scope == "user" {
		n.Title, n.Owner = "State of the user "+k.user+" in the app "+k.app, k.user
	}
	n.Title = titleOf(n.Title)
	if err := s.store.Create(ctx, n); err != nil && tapedeck.KindOf(err) != tapedeck.Conflict {
		return err
	}
	_, err = s.store.Append(ctx, a)
	return err
}
