package postgres

// A task that names the sessions it needs lets the writer read those of a whole group
// with one query.
type naming interface{ names() []string }

func (t *appending) names() []string { return []string{t.Session} }
func (t *deletion) names() []string  { return []string{t.session} }
func (t *erasing) names() []string   { return []string{t.Session} }

func (t *creation) names() []string {
	if t.Parent != "" {
		return []string{t.ID, t.Parent}
	}
	return []string{t.ID}
}

// prefetch reads the sessions of a group that are not in the cache. absent remembers
// those that do not exist.
func (w *writer) prefetch(group []*request) error {
	clear(w.absent)
	if len(group) < 2 {
		return nil
	}
	var ids []string
	for _, r := range group {
		n, ok := r.Task.(naming)
		if !ok || r.Left {
			continue
		}
		for _, id := range n.names() {
			if w.cache.states[id] == nil && !w.absent[id] {
				w.absent[id] = true
				ids = append(ids, id)
			}
		}
	}
	found, err := load(w.ask, ids...)
	for _, l := range found {
		delete(w.absent, l.ID)
		w.keep(l)
	}
	return err
}

// keep takes a session from the database into the cache.
func (w *writer) keep(l loaded) *state {
	st := &state{view: *l.view, streamSeq: l.streamSeq, written: *l.view, writtenSeq: l.streamSeq}
	w.cache.add(st)
	return st
}
