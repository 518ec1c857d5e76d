package tapedeck

import "context"

type conditionKey struct{}

// OnlyIf returns a context with which a [Store] changes a session only if may returns nil for
// it. may is called in the commit of each append, erasure, deletion and creation, before anything
// else is looked at, with the session as it is then. A new one has no events and no Gen yet; for
// a fork may is then called with the parent, too. Its error is that of the call. It must be
// quick, must not change the session, and must not call the store. The conditions of ctx stay,
// unless may is nil: then there are none.
//
// So who may do something is decided by the session that is changed, and not by one that had
// its id, its owner or its labels a moment before.
func OnlyIf(ctx context.Context, may func(*Session) error) context.Context {
	if may != nil {
		before, after := Condition(ctx), may
		may = func(s *Session) error {
			if err := before(s); err != nil {
				return err
			}
			return after(s)
		}
	}
	return context.WithValue(ctx, conditionKey{}, may)
}

// Condition returns the conditions of a context, see [OnlyIf]. It is never nil.
func Condition(ctx context.Context) func(*Session) error {
	if may, ok := ctx.Value(conditionKey{}).(func(*Session) error); ok && may != nil {
		return may
	}
	return unconditional
}

func unconditional(*Session) error { return nil }
