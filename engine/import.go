package engine

import (
	"context"
	"io"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine/exchange"
)

// An import appends what it has when it has so many events, or so many bytes of
// their data.
const (
	importEvents = 1000
	importBytes  = 4 << 20
)

// Import makes sessions of conversations that were recorded elsewhere: all that
// are in the input or, with an error or when ctx is cancelled, none. While it is
// under way its sessions can be seen; a session is whole when it has its
// session.imported. Formats are in [exchange.Formats]; another one, or input that
// is not of its format, is [tapedeck.Invalid].
func (e *Engine) Import(ctx context.Context, in tapedeck.ImportRequest, r io.Reader) (tapedeck.Imported, error) {
	for what, v := range map[string]string{"title": in.Title, "owner": in.Owner, "actor": in.Actor} {
		if err := tapedeck.CheckName("the "+what, v); err != nil {
			return tapedeck.Imported{}, err
		}
	}
	d, err := exchange.NewDecoder(in.Format, r, exchange.Options{Title: in.Title, Owner: in.Owner, Actor: in.Actor})
	if err != nil {
		return tapedeck.Imported{}, err
	}
	m := &importing{engine: e}
	if err := m.all(ctx, d); err != nil {
		m.undo(ctx)
		return tapedeck.Imported{}, err
	}
	m.Lines, m.Skipped = d.Lines(), d.Skipped()
	return m.Imported, nil
}

// An importing is an import under way.
type importing struct {
	engine *Engine
	tapedeck.Imported
	events []tapedeck.Event // of the last session, not appended yet
	bytes  int
}

func (m *importing) all(ctx context.Context, d *exchange.Decoder) error {
	for ev, err := range d.Events() {
		if err == nil {
			err = m.add(ctx, ev)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// add takes the next event. The first and the last one of a session are written
// at once.
func (m *importing) add(ctx context.Context, ev tapedeck.Event) error {
	m.Events++
	if ev.Type == tapedeck.SessionCreated {
		return m.create(ctx, ev)
	}
	m.events = append(m.events, ev)
	m.bytes += len(ev.Data)
	if len(m.events) >= importEvents || m.bytes >= importBytes || ev.Type == tapedeck.SessionImported {
		return m.flush(ctx)
	}
	return nil
}

func (m *importing) create(ctx context.Context, first tapedeck.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id := tapedeck.NewID("ses_")
	m.Sessions = append(m.Sessions, id) // before it is there: a failed commit may turn out to have come through
	_, _, err := m.engine.store.Create(ctx, tapedeck.Spec{ID: id, Kind: tapedeck.KindSession, Events: []tapedeck.Event{first}})
	return err
}

func (m *importing) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := m.engine.write(ctx, tapedeck.Append{Session: m.Sessions[len(m.Sessions)-1], Events: m.events}, nil)
	m.events, m.bytes = nil, 0 // the store keeps what it was given
	return err
}

// undo deletes the sessions that were made, also if ctx was cancelled.
func (m *importing) undo(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, id := range m.Sessions {
		err := m.engine.Delete(ctx, id)
		if err != nil && tapedeck.KindOf(err) != tapedeck.NotFound {
			m.engine.options.Logger.Error("a session of a failed import could not be deleted", "session", id, "error", err)
		}
	}
}
