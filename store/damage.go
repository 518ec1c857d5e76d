package store

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/tapedeck/tapedeck"
)

// maxDamages limits the damaged events that [Damages] knows one by one.
const maxDamages = 10_000

// Damages logs each damaged event once and counts them. The zero value is ready to use.
type Damages struct {
	mu    sync.Mutex
	known map[damage]bool
}

type damage struct{ gen, offset int64 }

// Note returns the error of a read that met the damaged event at an offset of a session.
// cause is what the read has found.
func (d *Damages) Note(log *slog.Logger, s *tapedeck.Session, offset int64, cause error) error {
	at := damage{s.Gen, offset}
	d.mu.Lock()
	isNew := !d.known[at] && len(d.known) < maxDamages
	if isNew {
		if d.known == nil {
			d.known = make(map[damage]bool)
		}
		d.known[at] = true
	}
	d.mu.Unlock()
	err := Damaged(s.ID, offset).Because(fmt.Errorf("%w: %w", tapedeck.ErrDamaged, cause))
	if isNew {
		log.Error("an event is damaged and is not served", "session", s.ID, "offset", offset, "error", cause)
	}
	return err
}

// Count returns how many damaged events reads have met, at most [maxDamages].
func (d *Damages) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.known)
}
