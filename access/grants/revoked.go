package grants

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/keyfile"
)

// revoked is the content of [RevokedFile].
type revoked struct {
	Tokens   map[string]int64 `json:"tokens"`   // when they expire at the latest, in seconds since 1970, by Gen and id
	Sessions map[int64]int64  `json:"sessions"` // tokens issued up to this time are revoked, in milliseconds since 1970, by Gen
	By       map[string]int64 `json:"by"`       // likewise, by the subject who issued them
}

// isRevoked reports whether a token was revoked, by itself or together with others. The
// caller has the lock.
func (i *Issuer) isRevoked(g *Grant) bool {
	_, ok := i.revoked.Tokens[nameOf(g.Gen, g.ID)]
	return ok || g.Issued <= i.revoked.Sessions[g.Gen] || g.Issued <= i.revoked.By[g.By]
}

// nameOf names a token of a session. An owner revokes tokens of that session only.
func nameOf(gen int64, id string) string { return strconv.FormatInt(gen, 10) + "/" + id }

// maxRevoked is how many single tokens of one session are revoked at once, and
// maxAllRevoked how many of all sessions.
const (
	maxRevoked    = 1000
	maxAllRevoked = 100_000
)

// Revoke makes a token of a session invalid, and ends its streams. An id that was never one
// of the session is [tapedeck.NotFound]. A token that has expired, or was revoked before,
// changes nothing.
func (i *Issuer) Revoke(gen int64, id string) error {
	expires, ok := i.expiryOf(gen, id)
	if !ok {
		return tapedeck.Errorf(tapedeck.NotFound, "the session has no token with the id %.128q", id).WithHint("the answer that made the token has its id; tapedeck token issued --session, or GET …/tokens, lists those with a name")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	name := nameOf(gen, id)
	if _, done := i.revoked.Tokens[name]; done || time.Now().Unix() >= expires {
		return nil
	}
	if len(i.revoked.Tokens) >= maxAllRevoked || i.countRevoked(gen) >= maxRevoked {
		return tapedeck.Errorf(tapedeck.Limited, "too many single tokens are revoked").WithHint("revoke all tokens of the session")
	}
	i.forgetNamed(func(n *Named) bool { return n.Gen == gen && n.ID == id })
	i.revoked.Tokens[name] = expires
	if l := i.live[id]; l != nil && l.Gen == gen {
		i.forget(id)
	}
	return i.store()
}

// countRevoked returns how many single tokens of a session are revoked. The caller has the
// lock.
func (i *Issuer) countRevoked(gen int64) (n int) {
	for name := range i.revoked.Tokens {
		if strings.HasPrefix(name, nameOf(gen, "")) {
			n++
		}
	}
	return n
}

// RevokeAll makes all tokens of a session that were issued so far invalid, and ends their
// streams.
func (i *Issuer) RevokeAll(gen int64) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.revoked.Sessions[gen] = time.Now().UnixMilli()
	for name := range i.revoked.Tokens { // it includes these
		if strings.HasPrefix(name, nameOf(gen, "")) {
			delete(i.revoked.Tokens, name)
		}
	}
	i.forgetNamed(func(n *Named) bool { return n.Gen == gen })
	for id, l := range i.live {
		if l.Gen == gen {
			i.forget(id)
		}
	}
	return i.store()
}

// RevokeBy makes all tokens invalid that a subject issued so far, and ends their streams. The
// subject keeps the token with which it issued them.
func (i *Issuer) RevokeBy(subject string) error {
	if err := tapedeck.CheckID("the subject", subject); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.revoked.By[subject] = time.Now().UnixMilli()
	i.forgetNamed(func(n *Named) bool { return n.By == subject })
	for id, l := range i.live {
		if l.By == subject {
			i.forget(id)
		}
	}
	return i.store()
}

// store stores what was revoked, without what has expired since. The caller has the lock.
func (i *Issuer) store() error {
	now := time.Now()
	maps.DeleteFunc(i.revoked.Tokens, func(_ string, expires int64) bool { return now.Unix() > expires })
	isOver := func(until int64) bool { return now.Sub(time.UnixMilli(until)) > MaxLife }
	maps.DeleteFunc(i.revoked.Sessions, func(_, until int64) bool { return isOver(until) })
	maps.DeleteFunc(i.revoked.By, func(_ string, until int64) bool { return isOver(until) })
	if i.dir == "" {
		return nil
	}
	b, err := json.Marshal(i.revoked)
	if err == nil {
		err = keyfile.Write(filepath.Join(i.dir, RevokedFile), b)
	}
	if err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the revocation cannot be stored, and counts only until the server ends: %w", err)
	}
	return nil
}
