package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store"
)

// maxRanges is the largest number of ranges in one erasure, because its receipt lists
// all of them.
const maxRanges = 10_000

// Erase permanently removes the payloads of events and appends a receipt, the event
// session.redacted; it does both or neither. Receipts are not erased. If the title or
// the labels of the session are from an erased event, the session loses them. A title
// that repeats an erased request is erased, too, with the event that set it. Forks
// that share the events lose the payloads too. Events that the session shares with
// its own parent are [tapedeck.Invalid], and so are offsets that it does not have.
// It is a [tapedeck.Conflict] if an open run began before the end of the last range.
// The events of a closed session can be erased.
func (e *Engine) Erase(ctx context.Context, r api.Erase) (api.Erased, error) {
	if err := validErase(&r); err != nil {
		return api.Erased{}, err
	}
	for range maxTries {
		done, err := e.tryErase(ctx, &r)
		if !errors.Is(err, errStale) {
			return done, err
		}
	}
	return api.Erased{}, tapedeck.Errorf(tapedeck.Unavailable, "session %s is being renamed by someone else", r.Session).WithHint("try again")
}

func validErase(r *api.Erase) error {
	switch {
	case r.All == (len(r.Events) > 0):
		return tapedeck.Errorf(tapedeck.Invalid, "the request does not say which events to erase").WithHint("give either ranges of offsets, or all")
	case len(r.Events) > maxRanges:
		return tapedeck.Errorf(tapedeck.TooLarge, "there are %d ranges; at most %d are allowed", len(r.Events), maxRanges)
	}
	if err := tapedeck.CheckName("the reason", r.Reason); err != nil {
		return err
	}
	return tapedeck.CheckName("the actor", r.Actor)
}

func (e *Engine) tryErase(ctx context.Context, r *api.Erase) (api.Erased, error) {
	s, err := e.session(ctx, r.Session)
	if err != nil {
		return api.Erased{}, err
	}
	a, n, err := e.erasure(ctx, r, &s)
	if err != nil {
		return api.Erased{}, err
	}
	done, err := e.store.Erase(ctx, a)
	if l := e.ledgers.find(s.ID); l != nil {
		l.invalidate()
	}
	if err != nil {
		return api.Erased{}, err
	}
	return api.Erased{Session: s.ID, Receipt: done.Next - 1, Events: n, Ranges: a.Ranges, Forks: done.Forks}, nil
}

// erasure returns the request to the store, and how many events it erases.
func (e *Engine) erasure(ctx context.Context, r *api.Erase, s *tapedeck.Session) (tapedeck.Erasure, int64, error) {
	a := tapedeck.Erasure{Session: s.ID, Ranges: merged(r.Events)}
	if r.All {
		a.Ranges = []tapedeck.OffsetRange{{From: s.ForkedAt, To: s.Head}}
	}
	found, err := e.inspect(ctx, &a, r, s)
	if err == nil && !r.All && len(found.titles) > 0 {
		var more []tapedeck.OffsetRange
		if more, err = e.titled(ctx, s, found.titles); err == nil && len(more) > 0 {
			a.Ranges = merged(append(a.Ranges, more...))
			found, err = e.inspect(ctx, &a, r, s)
		}
	}
	if err != nil {
		return a, 0, err
	}
	if rename := found.rename(); rename != nil {
		a.Events = append([]tapedeck.Event{event(*rename, r.Actor)}, a.Events...)
	}
	a.Events = append(withdrawn(inputsWithin(s, a.Ranges), "its text was erased", r.Actor), a.Events...)
	a.Check = func(now *tapedeck.Session) error {
		if !slices.Equal(now.Inputs, s.Inputs) {
			return errStale
		}
		if now.Gen != s.Gen || now.Title != s.Title || !maps.Equal(now.Labels, s.Labels) {
			return errStale
		}
		if !reflect.DeepEqual(now.Budget, s.Budget) || !reflect.DeepEqual(now.Spent, s.Spent) {
			return errStale
		}
		if err := found.notRunning(now); err != nil { // a run may have started since
			return err
		}
		return notRunning(now, a.Ranges)
	}
	return a, found.events, nil
}

// inputsWithin returns the inputs that wait and lose their text.
func inputsWithin(s *tapedeck.Session, ranges []tapedeck.OffsetRange) []tapedeck.WaitingInput {
	return slices.DeleteFunc(slices.Clone(s.Inputs), func(in tapedeck.WaitingInput) bool {
		return !slices.ContainsFunc(ranges, func(r tapedeck.OffsetRange) bool { return r.From <= in.Offset && in.Offset < r.To })
	})
}

// inspect checks the ranges of an erasure, sets its receipt, and surveys its events.
func (e *Engine) inspect(ctx context.Context, a *tapedeck.Erasure, r *api.Erase, s *tapedeck.Session) (survey, error) {
	receipt := payload.SessionRedacted{Offsets: a.Ranges, Reason: r.Reason}
	if s.Budget != nil {
		receipt.Budget = encoded(s.Budget)
	}
	if s.Spent != nil {
		receipt.Spent = encoded(s.Spent)
	}
	a.Events = []tapedeck.Event{event(receipt, r.Actor)}
	if err := store.CheckErasure(a); err != nil {
		return survey{}, err
	}
	if err := store.DecideErasure(a, s); err != nil {
		return survey{}, err
	}
	if err := notRunning(s, a.Ranges); err != nil {
		return survey{}, err
	}
	found, err := e.survey(ctx, s, a.Ranges)
	if err != nil {
		return survey{}, err
	}
	return found, found.notRunning(s)
}

// merged returns ranges sorted, and joined where they touch. It keeps empty ranges,
// which the store refuses.
func merged(ranges []tapedeck.OffsetRange) []tapedeck.OffsetRange {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b tapedeck.OffsetRange) int { return cmp.Compare(a.From, b.From) })
	var out []tapedeck.OffsetRange
	for _, r := range sorted {
		if n := len(out); n > 0 && r.From < r.To && r.From <= out[n-1].To && out[n-1].From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, r.To)
			continue
		}
		out = append(out, tapedeck.OffsetRange{From: r.From, To: r.To})
	}
	return out
}

// notRunning refuses ranges that reach into an open run: new events of the run are
// still checked against its earlier ones.
func notRunning(s *tapedeck.Session, ranges []tapedeck.OffsetRange) error {
	end := ranges[len(ranges)-1].To
	for _, r := range s.Runs {
		if r.Offset < end {
			return tapedeck.Errorf(tapedeck.Conflict, "%s is running in session %s since offset %d", r.Invocation, s.ID, r.Offset).
				WithHint("cancel it first, or erase only events below that offset")
		}
	}
	return nil
}

// A survey says what is in the ranges of an erasure.
type survey struct {
	events        int64           // that have a payload
	title, labels bool            // the session has its title, or its labels, from one of them
	invocations   map[string]bool // that they belong to
	titles        map[string]bool // that a session would get from the requests among them
}

// survey reads the events in ranges.
func (e *Engine) survey(ctx context.Context, s *tapedeck.Session, ranges []tapedeck.OffsetRange) (survey, error) {
	found := survey{invocations: map[string]bool{}, titles: map[string]bool{}}
	for _, r := range ranges {
		for ev, err := range tapedeck.Events(ctx, e.store, s.ID, r.From) {
			if err != nil {
				return survey{}, err
			}
			if ev.Offset >= r.To {
				break
			}
			found.add(&ev, s)
		}
	}
	return found, nil
}

func (f *survey) add(ev *tapedeck.Event, s *tapedeck.Session) {
	if ev.Type != tapedeck.SessionRedacted && !ev.Erased() {
		f.events++
	}
	if ev.Invocation != "" {
		f.invocations[ev.Invocation] = true
	}
	if title := titleFrom(ev); title != "" {
		f.titles[title] = true
	}
	if ev.Channel == tapedeck.ChannelSession {
		var said tapedeck.Session
		said.Apply(ev)
		f.title = f.title || said.Title != "" && said.Title == s.Title
		f.labels = f.labels || len(said.Labels) > 0 && maps.Equal(said.Labels, s.Labels)
	}
}

// notRunning refuses events of a run that is open, such as the request that started
// it: the agent has read them and may repeat them.
func (f *survey) notRunning(s *tapedeck.Session) error {
	for _, r := range s.Runs {
		if f.invocations[r.Invocation] {
			return tapedeck.Errorf(tapedeck.Conflict, "the ranges contain events of %s, which is running in session %s", r.Invocation, s.ID).
				WithHint("cancel it first")
		}
	}
	return nil
}

// rename returns the rename that removes an erased title or erased labels, nil if
// there is none.
func (f *survey) rename() *payload.SessionRenamed {
	if !f.title && !f.labels {
		return nil
	}
	var d payload.SessionRenamed
	if f.title {
		d.Title = new(string)
	}
	if f.labels {
		d.Labels = map[string]string{}
	}
	return &d
}
