package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Create implements [tapedeck.Catalogue].
func (s *Store) Create(ctx context.Context, spec tapedeck.Spec) (tapedeck.Created, error) {
	if err := ctx.Err(); err != nil {
		return tapedeck.Created{}, err
	}
	if err := store.CheckSpec(&spec); err != nil {
		return tapedeck.Created{}, err
	}
	now := s.options.Now()
	events, drafts, err := tapedeck.Drafts(spec.Events, spec.Chunks, now)
	if err != nil {
		return tapedeck.Created{}, err
	}
	size, err := sizeOf(drafts)
	if err != nil {
		return tapedeck.Created{}, err
	}
	spec.Events = events
	t := &creation{Spec: spec, may: tapedeck.Condition(ctx), drafts: drafts, now: now}
	if err := s.writer.submit(ctx, t, size+rowSize); err != nil {
		return tapedeck.Created{}, err
	}
	return t.done, nil
}

// A creation is the task of a create.
type creation struct {
	tapedeck.Spec
	may    func(*tapedeck.Session) error // see [tapedeck.OnlyIf]
	drafts []tapedeck.Draft
	now    time.Time
	done   tapedeck.Created
}

func (t *creation) do(w *writer) error {
	st, err := w.findAfterReaping(t.ID)
	switch {
	case err != nil:
		return err
	case st != nil && st.gone:
		return tapedeck.Errorf(tapedeck.Conflict, "session %q was deleted, and forks still need it", t.ID).WithHint("use another id")
	case st != nil:
		t.done = tapedeck.Created{Session: st.Session}
		return nil
	}
	if st, err = t.derive(w); err != nil {
		return err
	}
	if err := t.insert(w, st); err != nil {
		return err
	}
	if err := w.extend(st, t.drafts, t.Events, t.now); err != nil {
		return err
	}
	t.done = tapedeck.Created{Session: st.Session, New: true}
	return nil
}

// derive returns the session that t describes, before its first event.
func (t *creation) derive(w *writer) (*state, error) {
	began := store.CreatedAt(&t.Spec, t.now)
	st := new(state)
	st.Session = tapedeck.Session{
		ID: t.ID, Kind: t.Kind, Created: began, Updated: began, Closed: t.Closed, Parent: t.Parent,
		ContentType: t.ContentType, TTL: t.TTL, Expires: t.Expires.UTC().Truncate(time.Millisecond), Origin: t.Origin,
	}
	st.touched = w.now
	if t.Kind == tapedeck.KindSession {
		st.Status = tapedeck.StatusIdle
	}
	if err := t.may(&st.Session); err != nil {
		return nil, err
	}
	if t.Parent == "" {
		return st, nil
	}
	return st, t.inherit(w, st)
}

// inherit makes st a fork. A fork has a few spans, however many records it
// inherits.
func (t *creation) inherit(w *writer, st *state) error {
	parent, err := w.findAfterReaping(t.Parent)
	switch {
	case err != nil:
		return err
	case parent == nil:
		return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q to fork", t.Parent)
	}
	if err := t.may(&parent.Session); err != nil {
		return err
	}
	at, err := store.ForkPoint(&t.Spec, &parent.Session, parent.gone)
	if err != nil {
		return err
	}
	if t.ContentType == "" {
		st.ContentType = parent.ContentType
	}
	st.spans = slices.Clip(parent.upTo(at))
	st.Head, st.ForkedAt = at, at
	if st.link, err = w.linkBefore(parent, st.spans); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	return w.countForks(parent, +1)
}

const (
	sqlCreate = `INSERT INTO sessions (gen, id, kind, created, status, closed, parent, fork_at, content_type, origin, ttl, expires, touched, deadline, activity, title_key, key)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlCreateHead = `INSERT INTO heads (session, head, updated, link) VALUES (?, ?, ?, ?)`
	sqlInherit    = `INSERT INTO lineage (session, from_offset, to_offset, ancestor) VALUES (?, ?, ?, ?)`
	sqlForks      = `UPDATE sessions SET forks = forks + ? WHERE gen = ?`
)

// insert writes the rows of a new session.
func (t *creation) insert(w *writer, st *state) error {
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.newKey(st); err != nil {
		return err
	}
	w.gen++
	st.Gen = w.gen
	w.cache.add(st)
	w.mark(st)
	st.notify = true
	var deadline driver.Value
	if at, expires := st.deadline(st.touched); expires {
		deadline, w.due = at, min(w.due, at)
	}
	err := w.conn.exec(sqlCreate, st.Gen, st.ID, string(st.Kind), st.Created.UnixMilli(), string(st.Status), flag(st.Closed),
		st.Parent, st.ForkedAt, st.ContentType, st.Origin, int64(st.TTL), milliseconds(st.Expires), st.touched, deadline,
		store.PlaceOf(&st.Session, store.SortActivity).Number, st.titleKey(), optionalBytes(st.keyID))
	if err != nil {
		return err
	}
	if err := w.conn.exec(sqlCreateHead, st.Gen, st.Head, st.Updated.UnixMilli(), int64(st.link)); err != nil {
		return err
	}
	for _, s := range st.spans {
		if err := w.conn.exec(sqlInherit, st.Gen, s.from, s.to, s.gen); err != nil {
			return err
		}
	}
	st.written, st.writtenSeq = st.view, st.streamSeq
	return nil
}

// countForks adds n to the number of forks of a session.
func (w *writer) countForks(st *state, n int64) error {
	w.mark(st)
	st.forks += n
	return w.conn.exec(sqlForks, n, st.Gen)
}
