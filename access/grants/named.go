package grants

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/keyfile"
)

// A Named is a token that has a name, as a list shows it: without the token itself.
type Named struct {
	Grant
	Name string `json:"name"`
}

// Named returns the tokens of a session that have a name and are valid, newest first.
func (i *Issuer) Named(gen int64) []Named {
	return i.list(func(g *Grant) bool { return g.Gen == gen }, false)
}

// Issued returns the valid tokens of all sessions, newest first: those that have a name, and
// those that were used since the server has started. With a subject, only those that it
// issued.
func (i *Issuer) Issued(by string) []Named {
	return i.list(func(g *Grant) bool { return by == "" || g.By == by }, true)
}

// list returns the valid tokens that match, newest first.
func (i *Issuer) list(match func(*Grant) bool, used bool) (out []Named) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now, listed := time.Now(), map[string]bool{}
	for _, all := range i.named {
		for k := range all {
			if n := &all[k]; match(&n.Grant) && !n.hasExpired(now) && i.until(&n.Grant) != nil {
				out, listed[n.ID] = append(out, *n), true
			}
		}
	}
	for id, l := range i.live {
		if used && match(&l.Grant) && !listed[id] && l.who.Valid() == nil {
			out = append(out, Named{Grant: l.Grant})
		}
	}
	slices.SortFunc(out, func(a, b Named) int { return cmp.Or(cmp.Compare(b.Issued, a.Issued), cmp.Compare(b.ID, a.ID)) })
	return out
}

func (n *Named) hasExpired(now time.Time) bool { return now.Unix() >= n.Expires }

// remember keeps what a list shows of a token, if it has a name.
func (i *Issuer) remember(g *Grant) error {
	if g.Name == "" {
		return nil
	}
	if err := tapedeck.CheckName("the name of the token", g.Name); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forgetNamed(func(*Named) bool { return false })
	if len(i.named[g.Gen]) >= maxNamed {
		return tapedeck.Errorf(tapedeck.Limited, "session %s has %d tokens with a name", g.Session, maxNamed).WithHint("revoke some, or leave out the name")
	}
	i.named[g.Gen] = append(i.named[g.Gen], Named{*g, g.Name})
	if err := i.storeNamed(); err != nil {
		last := len(i.named[g.Gen]) - 1
		i.named[g.Gen] = i.named[g.Gen][:last]
		return tapedeck.Errorf(tapedeck.Unavailable, "the name of the token cannot be stored: %w", err)
	}
	return nil
}

// forgetNamed forgets tokens that are listed, and all that have expired. The caller has the
// lock. If the file cannot be written, a token that was revoked is listed again after a
// restart; it is refused all the same.
func (i *Issuer) forgetNamed(which func(*Named) bool) {
	now, changed := time.Now(), false
	for g, list := range i.named {
		left := slices.DeleteFunc(list, func(n Named) bool { return n.hasExpired(now) || which(&n) })
		changed = changed || len(left) < len(list)
		i.named[g] = left
		if len(left) == 0 {
			delete(i.named, g)
		}
	}
	if changed {
		_ = i.storeNamed()
	}
}

// storeNamed stores the tokens that have a name. The caller has the lock.
func (i *Issuer) storeNamed() error {
	if i.dir == "" {
		return nil
	}
	b, err := json.Marshal(i.named)
	if err == nil {
		err = keyfile.Write(filepath.Join(i.dir, NamedFile), b)
	}
	return err
}

// loadNamed reads the tokens that have a name. The file only serves lists: without it, or
// if it has a fault, tokens stay valid and can still be revoked together.
func (i *Issuer) loadNamed() {
	b, err := os.ReadFile(filepath.Join(i.dir, NamedFile))
	if err != nil {
		return
	}
	named := map[int64][]Named{}
	if json.Unmarshal(b, &named) == nil {
		i.named = named
	}
}
