package grants

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

// A live token has been used.
type live struct {
	Grant
	who *access.Identity
	end context.CancelFunc
}

// use returns the identity of a token, which is one for all its requests.
func (i *Issuer) use(g *Grant) (*access.Identity, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.isRevoked(g) {
		return nil, tapedeck.Errorf(tapedeck.Unauthorized, "the token was revoked").WithHint("ask for a new one")
	}
	if l := i.live[g.ID]; l != nil && l.who.Revoked.Err() == nil {
		return l.who, nil
	}
	until := i.until(g)
	if until == nil {
		return nil, tapedeck.Errorf(tapedeck.Unauthorized, "the token that made this one was revoked or changed").WithHint("ask for a new one")
	}
	i.makeSpace()
	l := &live{Grant: *g, who: g.identity()}
	l.who.Revoked, l.end = context.WithCancel(until)
	i.live[g.ID] = l
	return l.who, nil
}

// until returns a context that is done when the token is no longer kept with which another one
// was made; nil if it is not kept now.
func (i *Issuer) until(g *Grant) context.Context {
	if g.With == "" {
		return context.Background()
	}
	return i.Kept(g.With)
}

// makeSpace forgets tokens that are no longer valid, and if that is not enough, any other:
// its streams end, and its client connects again. The caller has the lock.
func (i *Issuer) makeSpace() {
	if len(i.live) < maxLive {
		return
	}
	for id, l := range i.live {
		if l.who.Valid() != nil {
			i.forget(id)
		}
	}
	for id := range i.live {
		if len(i.live) < maxLive {
			return
		}
		i.forget(id)
	}
}

// forget ends what a token began. The caller has the lock.
func (i *Issuer) forget(id string) {
	i.live[id].end()
	delete(i.live, id)
}
