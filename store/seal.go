package store

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
)

// Stores that encrypt what sessions have do it with these functions, so that all of them
// leave the same in clear: ids, owners, agents, times, statuses, numbers.

// Names of what is encrypted of an entry, see [sessionkeys.Key.Seal].
const (
	sealedEntryName  = "entry"
	sealedTotalsName = "totals"
)

// A sealedEntry has the members of an entry that are made of what people and agents say.
type sealedEntry struct {
	Title   string                  `json:"title,omitempty"`
	Labels  map[string]string       `json:"labels"` // null and empty are different
	Inputs  []tapedeck.WaitingInput `json:"inputs,omitempty"`
	Waiting []tapedeck.OpenQuestion `json:"waiting,omitempty"`
}

// SealEntry returns the members of an entry that are encrypted.
func SealEntry(k *sessionkeys.Key, s *tapedeck.Session) ([]byte, error) {
	b, err := json.Marshal(sealedEntry{s.Title, s.Labels, s.Inputs, s.Waiting})
	if err != nil {
		return nil, err
	}
	return k.Seal(sealedEntryName, b), nil
}

// OpenEntry sets the members of an entry that [SealEntry] has encrypted.
func OpenEntry(k *sessionkeys.Key, sealed []byte, s *tapedeck.Session) error {
	b, err := k.Open(sealedEntryName, sealed)
	if err != nil {
		return err
	}
	var e sealedEntry
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	s.Title, s.Labels, s.Inputs, s.Waiting = e.Title, e.Labels, e.Inputs, e.Waiting
	return nil
}

// SealTotals returns the row of the totals, which has words of messages, encrypted.
func SealTotals(k *sessionkeys.Key, row []byte) []byte { return k.Seal(sealedTotalsName, row) }

// OpenTotals decrypts what [SealTotals] has encrypted.
func OpenTotals(k *sessionkeys.Key, sealed []byte) ([]byte, error) {
	return k.Open(sealedTotalsName, sealed)
}

// ViewOf returns the gen of the session of which a view is, by the id of the view, see
// [tapedeck.ViewPrefix]. It reports false for a view of no session. Such a one is no cache: the
// journal of an import, and what a recovery notes, cannot be made again from the log.
func ViewOf(id string) (gen int64, ok bool) {
	rest, isView := strings.CutPrefix(id, tapedeck.ViewPrefix)
	parts := strings.SplitN(rest, "/", 4)
	if !isView || len(parts) < 4 {
		return 0, false
	}
	gen, err := strconv.ParseInt(parts[2], 10, 64)
	return gen, err == nil && gen > 0
}
