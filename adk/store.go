package adk

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/view"
)

// A store has the sessions of Tapedeck: a deck, or a server.
type store interface {
	catalogue
	log
}

// A catalogue knows which sessions there are.
type catalogue interface {
	Info(ctx context.Context, id string) (tapedeck.Session, error)
	Create(ctx context.Context, n api.NewSession) error
	Delete(ctx context.Context, id string) error
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
	Rename(ctx context.Context, id string, r api.Rename) error
}

// A log has the events of sessions.
type log interface {
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Events(ctx context.Context, id string, from int64) iter.Seq2[tapedeck.Event, error]
	Snapshot(ctx context.Context, id string, q view.Query) (view.Snapshot, error)
	Rewind(ctx context.Context, id string, r api.Rewind) (api.Rewound, error)
	Undo(ctx context.Context, id, marker string) (api.Rewound, error)
}

// local is the store of a deck in this process.
type local struct{ deck *deck.Deck }

func (l local) Info(ctx context.Context, id string) (tapedeck.Session, error) {
	return l.deck.Session(id).Info(ctx)
}

func (l local) Create(ctx context.Context, n api.NewSession) error {
	_, err := l.deck.Create(ctx, n)
	return err
}

func (l local) Delete(ctx context.Context, id string) error { return l.deck.Session(id).Delete(ctx) }

func (l local) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	return l.deck.Sessions(ctx, f)
}

func (l local) Rename(ctx context.Context, id string, r api.Rename) error {
	_, err := l.deck.Session(id).Rename(ctx, r)
	return err
}

func (l local) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	return l.deck.Append(ctx, a)
}

func (l local) Events(ctx context.Context, id string, from int64) iter.Seq2[tapedeck.Event, error] {
	return l.deck.Session(id).Events(ctx, from)
}

func (l local) Snapshot(ctx context.Context, id string, q view.Query) (view.Snapshot, error) {
	return l.deck.Session(id).Snapshot(ctx, q)
}

func (l local) Rewind(ctx context.Context, id string, r api.Rewind) (api.Rewound, error) {
	return l.deck.Session(id).Rewind(ctx, r)
}

func (l local) Undo(ctx context.Context, id, marker string) (api.Rewound, error) {
	return l.deck.Session(id).Undo(ctx, marker)
}

// remote is the store of a server.
type remote struct{ client *client.Client }

func (r remote) Info(ctx context.Context, id string) (tapedeck.Session, error) {
	return r.client.Session(ctx, id)
}

func (r remote) Create(ctx context.Context, n api.NewSession) error {
	_, err := r.client.Create(ctx, n)
	return err
}

func (r remote) Delete(ctx context.Context, id string) error { return r.client.Delete(ctx, id) }

func (r remote) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	page, err := r.client.Sessions(ctx, f)
	out := tapedeck.SessionPage{Next: page.Next}
	for i := range page.Sessions {
		out.Sessions = append(out.Sessions, page.Sessions[i].Session)
	}
	return out, err
}

func (r remote) Rename(ctx context.Context, id string, n api.Rename) error {
	n.Session = id
	_, err := r.client.Rename(ctx, n)
	return err
}

func (r remote) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	var body bytes.Buffer
	lines := json.NewEncoder(&body)
	for i := range a.Events {
		if err := lines.Encode(a.Events[i]); err != nil {
			return tapedeck.Appended{}, err
		}
	}
	return r.client.Append(ctx, a.Session, &body, client.AppendOptions{Expect: a.Expect, Producer: a.Producer})
}

func (r remote) Events(ctx context.Context, id string, from int64) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		var gen int64 // of the pages
		for {
			page, err := r.client.Page(ctx, id, client.PageOptions{From: from, Gen: gen})
			if err != nil {
				yield(tapedeck.Event{}, err)
				return
			}
			for i := range page.Records {
				e, err := page.Records[i].Event()
				if !yield(e, err) || err != nil {
					return
				}
			}
			if from, gen = page.Next, page.Gen; page.CaughtUp() {
				return
			}
		}
	}
}

func (r remote) Snapshot(ctx context.Context, id string, q view.Query) (view.Snapshot, error) {
	return r.client.Snapshot(ctx, id, q)
}

func (r remote) Rewind(ctx context.Context, id string, w api.Rewind) (api.Rewound, error) {
	w.Session = id
	return r.client.Rewind(ctx, w)
}

func (r remote) Undo(ctx context.Context, id, marker string) (api.Rewound, error) {
	return r.client.Undo(ctx, api.Undo{Session: id, Marker: marker})
}
