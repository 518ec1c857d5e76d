package access_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

// TestBind: a bound context ends with the identity and says why, and with its parent.
func TestBind(t *testing.T) {
	for _, c := range []struct {
		name                       string
		expires, revocable, revoke bool
	}{{"expires", true, false, false}, {"is revoked", false, true, true}, {"expires unrevoked", true, true, false}, {"is revoked before it expires", true, true, true}} {
		synctest.Test(t, func(t *testing.T) {
			i := &access.Identity{}
			revoked, revoke := context.WithCancel(t.Context())
			defer revoke()
			if c.revocable {
				i.Revoked = revoked
			}
			if c.expires {
				i.Expires = time.Now().Add(time.Minute)
			}
			ctx, stop := i.Bind(t.Context())
			defer stop()
			parent, cancel := context.WithCancel(t.Context())
			other, release := i.Bind(parent)
			cancel()
			<-other.Done()
			release()
			if ctx.Err() != nil || tapedeck.KindOf(context.Cause(other)) == tapedeck.Unauthorized {
				t.Errorf("%s: it ends at once: %v, %v", c.name, context.Cause(ctx), context.Cause(other))
			}
			if c.revoke {
				revoke()
			}
			<-ctx.Done()
			if tapedeck.KindOf(context.Cause(ctx)) != tapedeck.Unauthorized || context.Cause(ctx).Error() != i.Valid().Error() {
				t.Errorf("%s: the cause is %v", c.name, context.Cause(ctx))
			}
		})
	}
}
