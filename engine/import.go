package engine

import (
	"context"
	"io"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine/exchange"
)

// An import appends its events when it has this many, or this many bytes of data.
const (
	importEvents = 1000
	importBytes  = 4 << 20
)

// Import creates sessions from exported conversations, or from recordings of other
// programs. It creates all sessions in the input. After an error, when ctx is
// cancelled, or when the process dies (see [Engine.Recover]), it leaves none. During
// the import its sessions are visible; writing to one fails the import. The formats
// are in [exchange.Formats]; another format, or input that does not have its format,
// is [tapedeck.Invalid].
//
// An exported session gets its id again if that is free, otherwise a new one.
func (e *Engine) Import(ctx context.Context, in api.ImportRequest, r io.Reader) (api.Imported, error) {
	d, err := e.decoder(in, r)
	if err != nil {
		return api.Imported{}, err
	}
	m := &importing{engine: e, journal: newJournal(e), creating: in.Creating}
	defer func() {
		for _, id := range m.Sessions {
			e.importing.Delete(id)
		}
	}()
	if err := m.all(tapedeck.OnlyIf(ctx, ofImport(m.journal.id)), d); err != nil {
		m.journal.undo()
		m.letBegin()
		return api.Imported{}, err
	}
	m.Lines, m.Skipped = d.Lines(), d.Skipped()
	return m.Imported, nil
}

// ofImport is a condition for the sessions of the import with a journal.
func ofImport(journal string) func(*tapedeck.Session) error {
	return func(s *tapedeck.Session) error {
		if s.Kind == tapedeck.KindSession && s.Origin != journal {
			return tapedeck.Errorf(tapedeck.NotFound, "session %s was deleted during the import", s.ID)
		}
		return nil
	}
}

// An importing is an active import.
type importing struct {
	engine  *Engine
	journal *journal
	api.Imported
	creating func(context.Context) (func(), error) // see [api.ImportRequest]; nil for none
	session  string                                // the session that is being written; "" for none
	release  func()                                // lets inputs of the session begin
	entry    tapedeck.Session                      // its entry in the input
	next     int64                                 // its head
	events   []tapedeck.Event                      // not appended yet
	bytes    int
}

func (m *importing) all(ctx context.Context, d *exchange.Decoder) error {
	for ev, err := range d.Events() {
		if err != nil {
			return err
		}
		if entry, starts := d.Starts(); starts {
			err = m.begin(ctx, entry, ev)
		} else {
			err = m.addEvent(ctx, ev)
		}
		if err != nil {
			return err
		}
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	return m.journal.complete(ctx)
}

// begin finishes the session before and creates the next one.
func (m *importing) begin(ctx context.Context, entry tapedeck.Session, first tapedeck.Event) error {
	if err := m.finish(ctx); err != nil {
		return err
	}
	if m.creating != nil {
		created, err := m.creating(ctx)
		if n := len(m.Sessions); tapedeck.KindOf(err) == tapedeck.Limited && n > 0 {
			return tapedeck.Errorf(tapedeck.Limited, "the input has more than %d sessions, and their owner may have no more", n).WithHint("delete some sessions, or divide the input")
		}
		if err != nil {
			return err
		}
		defer created()
	}
	m.entry, m.next = entry, 1
	m.Events++
	id, err := m.create(ctx, first)
	m.session, m.release = id, m.engine.feeder.hold(id)
	m.engine.importing.Store(id, nil)
	m.Sessions = append(m.Sessions, id)
	return err
}

// notImported refuses to start a run in a session of an import that is not complete: the run
// would end the import, or with it.
func (e *Engine) notImported(session string) error {
	if _, is := e.importing.Load(session); !is {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, "session %s is being imported", session).WithHint("try again when the import is complete")
}

// create creates a session, with its old id if that is free.
func (m *importing) create(ctx context.Context, first tapedeck.Event) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if id := m.entry.ID; tapedeck.CheckID("the id", id) == nil {
		if made, err := m.journal.create(ctx, id, first); made || err != nil {
			return id, err
		}
	}
	return m.journal.createNew(ctx, first)
}

// addEvent adds the next event of a session.
func (m *importing) addEvent(ctx context.Context, ev tapedeck.Event) error {
	m.Events++
	m.events = append(m.events, ev)
	m.bytes += len(ev.Data)
	if len(m.events) >= importEvents || m.bytes >= importBytes {
		return m.flush(ctx, false)
	}
	return nil
}

// flush appends the collected events. The decoder has checked their order, so the
// only check needed is that no one else has written to the session.
func (m *importing) flush(ctx context.Context, closes bool) error {
	if err := ctx.Err(); err != nil || len(m.events) == 0 && !closes {
		return err
	}
	at, n := m.next, int64(len(m.events))
	_, err := m.engine.store.Append(ctx, tapedeck.Append{Session: m.session, Events: m.events, Close: closes, Expect: &at, Elsewhere: true})
	m.next += n
	m.events, m.bytes = nil, 0 // the store keeps what it was given
	return err
}

// letBegin lets inputs of the session begin that is being written.
func (m *importing) letBegin() {
	if m.release != nil {
		m.release()
		m.release = nil
	}
}

// finish completes the session that is being written. It ends the runs that were open
// when the session was exported, because no engine drives them here.
func (m *importing) finish(ctx context.Context) error {
	if m.session == "" {
		return nil
	}
	defer m.letBegin()
	id, closed := m.session, m.entry.Closed
	err := m.flush(ctx, closed)
	m.session = ""
	if err != nil || closed {
		return err
	}
	if _, err := m.engine.withdrawAll(ctx, id, "", "it waited in the session that was exported", "tapedeck"); err != nil {
		return err
	}
	s, err := m.engine.session(ctx, id)
	if err != nil {
		return err
	}
	end := errorEnd(tapedeck.CodeInterrupted, "the run was under way when the session was exported", tapedeck.StatusInterrupted)
	for _, r := range s.Runs {
		if err := m.engine.finish(ctx, id, r.Invocation, end, nil).err; err != nil && !isOver(err) {
			return err
		}
	}
	return nil
}
