package deck

import (
	"context"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/guard"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

// recordedVerbs are the verbs of an engine that records what concerns trust. It is behind
// the guard, so that it sees only what a sender may do.
type recordedVerbs struct {
	*engine.Engine
	auditor *auditor
}

// Delete deletes a session.
func (v recordedVerbs) Delete(ctx context.Context, session string) error {
	done, err := v.auditor.begin(ctx, audit.Delete, session)
	if err == nil {
		err = v.Engine.Delete(ctx, session)
		done(err)
	}
	return err
}

// Erase removes payloads.
func (v recordedVerbs) Erase(ctx context.Context, e api.Erase) (api.Erased, error) {
	done, err := v.auditor.begin(ctx, audit.Erase, e.Session)
	if err != nil {
		return api.Erased{}, err
	}
	out, err := v.Engine.Erase(ctx, e)
	done(err)
	return out, err
}

// Export returns a session as a file. Without access control it does so on a full disk, too:
// nobody has a name there that the record would keep, and people need their sessions.
func (v recordedVerbs) Export(ctx context.Context, in api.ExportRequest) (api.Export, error) {
	done, err := v.auditor.begin(ctx, audit.Export, in.Session)
	if tapedeck.KindOf(err) == tapedeck.Unavailable && access.From(ctx) == nil {
		return v.Engine.Export(ctx, in)
	}
	if err != nil {
		return api.Export{}, err
	}
	out, err := v.Engine.Export(ctx, in)
	done(err)
	return out, err
}

// Rename changes the title, the labels or the budget of a session.
func (v recordedVerbs) Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error) {
	if !shares(r) {
		return v.Engine.Rename(ctx, r)
	}
	done, err := v.auditor.begin(ctx, audit.Share, r.Session)
	if err != nil {
		return tapedeck.Session{}, err
	}
	out, err := v.Engine.Rename(ctx, r)
	done(err)
	return out, err
}

// shares reports whether a change may change with whom a session is shared. New labels
// without those of a share end it.
func shares(r api.Rename) bool {
	if r.Labels != nil {
		return true
	}
	for _, name := range [...]string{api.ShareRead, api.ShareWrite} {
		if _, ok := r.ChangeLabels[name]; ok {
			return true
		}
	}
	return false
}

// A recordedStore records deletions of streams.
type recordedStore struct {
	guard.Store
	auditor *auditor
}

// Delete deletes a stream or a session.
func (s recordedStore) Delete(ctx context.Context, id string) error {
	action := audit.Delete
	if strings.HasPrefix(id, tapedeck.StreamPrefix) {
		action = audit.StreamDelete
	}
	done, err := s.auditor.begin(ctx, action, id)
	if err == nil {
		err = s.Store.Delete(ctx, id)
		done(err)
	}
	return err
}

// recordedTokens record the tokens of sessions. It is before the guard: the record needs
// the id that the guard has chosen.
type recordedTokens struct {
	rest.Tokens
	auditor *auditor
}

// Issue makes a token. One that cannot be recorded is revoked, and not answered.
func (t recordedTokens) Issue(ctx context.Context, n api.NewToken) (api.IssuedToken, error) {
	if err := t.auditor.allow(ctx); err != nil {
		return api.IssuedToken{}, err
	}
	out, err := t.Tokens.Issue(ctx, n)
	if err != nil {
		return out, err
	}
	if err := t.auditor.ended(ctx, audit.Issue, out.Session, out.ID); err != nil {
		_ = t.Tokens.Revoke(ctx, out.Session, out.ID) // nobody has seen it
		return api.IssuedToken{}, err
	}
	return out, nil
}

// Revoke revokes a token, or all of a session. It does so first: a log that cannot be
// written must not keep a token valid.
func (t recordedTokens) Revoke(ctx context.Context, session, id string) error {
	if err := t.Tokens.Revoke(ctx, session, id); err != nil {
		return err
	}
	return revoked(t.auditor.ended(ctx, audit.Revoke, session, id))
}

// RevokeIssued revokes all tokens that a subject issued, likewise.
func (t recordedTokens) RevokeIssued(ctx context.Context, by string) error {
	if err := t.Tokens.RevokeIssued(ctx, by); err != nil {
		return err
	}
	return revoked(t.auditor.endedFor(ctx, audit.Revoke, "", "", "all that "+by+" issued"))
}

// revoked returns the error of a revocation that could not be recorded.
func revoked(err error) error {
	if err == nil {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the token was revoked, but the audit log cannot be written").WithHint("the server's log says why").Because(err)
}
