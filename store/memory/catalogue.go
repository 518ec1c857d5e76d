package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Create implements [tapedeck.Catalogue].
func (m *Store) Create(ctx context.Context, s tapedeck.Spec) (tapedeck.Created, error) {
	now := m.now()
	if err := store.CheckSpec(&s); err != nil {
		return tapedeck.Created{}, err
	}
	events, drafts, err := tapedeck.Drafts(s.Events, s.Chunks, now)
	if err != nil {
		return tapedeck.Created{}, err
	}
	unlock, err := m.enter(ctx)
	if err != nil {
		return tapedeck.Created{}, err
	}
	defer unlock()
	if l := m.sessions[s.ID]; l != nil {
		if l.gone {
			return tapedeck.Created{}, tapedeck.Errorf(tapedeck.Conflict,
				"session %q was deleted, and forks still need it", s.ID).WithHint("use another id")
		}
		return tapedeck.Created{Session: l.Session}, nil
	}
	l, err := m.derive(ctx, &s, now)
	if err != nil {
		return tapedeck.Created{}, err
	}
	if err := m.commit(); err != nil {
		return tapedeck.Created{}, err
	}
	records := l.extend(events, drafts, now)
	m.add(l)
	m.committed(tapedeck.Commit{Session: l.Session, Records: records})
	return tapedeck.Created{Session: l.Session, New: true}, nil
}

// derive returns the log that s describes, before its first event. It changes nothing
// in the store, so that a fork that fails leaves no reference.
func (m *Store) derive(ctx context.Context, s *tapedeck.Spec, now time.Time) (*log, error) {
	l := &log{spans: make([][]tapedeck.Record, 1), touched: now}
	l.Session = tapedeck.Session{
		ID: s.ID, Kind: s.Kind, Created: store.CreatedAt(s, now), Updated: store.CreatedAt(s, now),
		Closed: s.Closed, Parent: s.Parent, ContentType: s.ContentType,
		TTL: s.TTL, Expires: milliseconds(s.Expires), Origin: s.Origin,
	}
	if s.Kind == tapedeck.KindSession {
		l.Status = tapedeck.StatusIdle
	}
	if err := tapedeck.Condition(ctx)(&l.Session); err != nil {
		return nil, err
	}
	if s.Parent == "" {
		return l, nil
	}
	return l, m.inherit(ctx, l, s)
}

// inherit makes l a fork.
func (m *Store) inherit(ctx context.Context, l *log, s *tapedeck.Spec) error {
	parent := m.sessions[s.Parent]
	if parent == nil {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q to fork", s.Parent)
	}
	if err := tapedeck.Condition(ctx)(&parent.Session); err != nil {
		return err
	}
	at, err := store.ForkPoint(s, &parent.Session, parent.gone)
	if err != nil {
		return err
	}
	if s.ContentType == "" {
		l.ContentType = parent.ContentType
	}
	l.parent, l.spans = parent, parent.share(at)
	l.Head, l.ForkedAt = at, at
	return nil
}

// add adds l to the store. Requires m.mu.
func (m *Store) add(l *log) {
	m.gen = m.nextGen(m.gen)
	l.Gen = m.gen
	m.sessions[l.ID] = l
	m.order = append(m.order, l)
	if l.parent != nil {
		l.parent.forks++
	}
	if d := l.deadline(); !d.IsZero() {
		m.mortal[l] = struct{}{}
		m.expect(d)
	}
}

// Delete implements [tapedeck.Catalogue].
func (m *Store) Delete(ctx context.Context, session string) error {
	unlock, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := m.find(session)
	if err == nil {
		err = tapedeck.Condition(ctx)(&l.Session)
	}
	if err != nil {
		return err
	}
	if err := m.commit(); err != nil {
		return err
	}
	m.remove(l)
	return nil
}

// Touch implements [tapedeck.Catalogue].
func (m *Store) Touch(ctx context.Context, session string) error {
	unlock, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := m.find(session)
	if err != nil {
		return err
	}
	l.touched = m.now()
	return nil
}

// List implements [tapedeck.Catalogue]. The cursor is the [store.Place] of the last
// session of the previous page.
func (m *Store) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	page, _, err := m.ListPlaces(ctx, f)
	return page, err
}

// ListPlaces is List, and returns the place of each session of the page, too.
func (m *Store) ListPlaces(ctx context.Context, f tapedeck.Filter) (page tapedeck.SessionPage, places []store.Place, err error) {
	unlock, err := m.enter(ctx)
	if err != nil {
		return page, nil, err
	}
	defer unlock()
	if err := store.CheckFilter(&f); err != nil {
		return page, nil, err
	}
	after, has, err := store.ParseCursor(&f)
	if err != nil {
		return page, nil, err
	}
	limit := limitOf(f)
	for _, l := range m.inOrder(&f) {
		place := store.PlaceOf(&l.Session, f.Sort)
		if c := place.Compare(after); has && (c == 0 || (c < 0) == f.Ascending) || l.gone || !matches(&l.Session, &f) {
			continue
		}
		if len(page.Sessions) == limit { // there is one more
			page.Next = store.FormatCursor(&f, places[limit-1])
			break
		}
		page.Sessions, places = append(page.Sessions, l.Session), append(places, place)
	}
	return page, places, nil
}

// inOrder returns all sessions in the order of a list.
func (m *Store) inOrder(f *tapedeck.Filter) []*log {
	out := slices.Clone(m.order)
	slices.SortFunc(out, func(a, b *log) int {
		c := store.PlaceOf(&a.Session, f.Sort).Compare(store.PlaceOf(&b.Session, f.Sort))
		if f.Ascending {
			return c
		}
		return -c
	})
	return out
}

// SaveTotals replaces the totals of sessions. It leaves out sessions that were deleted
// meanwhile. Observers are not notified: no event is new.
func (m *Store) SaveTotals(ctx context.Context, of []tapedeck.Session) error {
	unlock, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.commit(); err != nil {
		return err
	}
	for i := range of {
		if l := m.sessions[of[i].ID]; l != nil && !l.gone && l.Gen == of[i].Gen {
			l.Totals = of[i].Totals
		}
	}
	return nil
}

func limitOf(f tapedeck.Filter) int {
	if f.Limit <= 0 {
		return 100
	}
	return min(f.Limit, 1000)
}

func matches(s *tapedeck.Session, f *tapedeck.Filter) bool {
	kind := f.Kind
	if kind == "" {
		kind = tapedeck.KindSession
	}
	return s.Kind == kind &&
		(f.Status == "" || s.Status == f.Status) && (!f.Closed || s.Closed) &&
		(f.Agent == "" || s.Agent == f.Agent) &&
		(f.Owner == "" || s.Owner == f.Owner) &&
		(f.Parent == "" || s.Parent == f.Parent) &&
		(f.From.IsZero() || !s.Created.Before(f.From)) &&
		(f.To.IsZero() || s.Created.Before(f.To)) &&
		(f.Query == "" || contains(s.Title, f.Query) || contains(s.ID, f.Query) || slices.Contains(f.MatchIDs, s.ID)) &&
		(!f.OpenRun || len(s.Runs) > 0) && (!f.Inputs || len(s.Inputs) > 0) && store.HasLabels(s, f)
}

// contains reports whether s contains part, ignoring case.
func contains(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
