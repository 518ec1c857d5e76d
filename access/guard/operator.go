package guard

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// forAdmins returns an error unless the identity of a context is an admin without limits.
func forAdmins(ctx context.Context, what string) error {
	i, err := who(ctx)
	if err != nil || i.IsUnlimited() {
		return err
	}
	return tapedeck.Errorf(tapedeck.Forbidden, "this token may not use %s: that is for admins, with a token that is not limited to some sessions", what)
}

// An Operator knows how the server is.
type Operator interface {
	Stats(ctx context.Context) (api.Stats, error)
}

// Operate guards an operator: the server as a whole is for admins.
func Operate(o Operator) Operator { return operated{o} }

type operated struct{ operator Operator }

// Stats describes the server.
func (o operated) Stats(ctx context.Context) (api.Stats, error) {
	if err := forAdmins(ctx, "the statistics of the server"); err != nil {
		return api.Stats{}, err
	}
	return o.operator.Stats(ctx)
}

// An Audit has the audit log.
type Audit interface {
	Audit(ctx context.Context, q api.AuditQuery) (api.AuditPage, error)
}

// Audited guards an audit log: it tells of all users, so it is for admins.
func Audited(a Audit) Audit { return audited{a} }

type audited struct{ log Audit }

// Audit returns a page of the audit log.
func (a audited) Audit(ctx context.Context, q api.AuditQuery) (api.AuditPage, error) {
	if err := forAdmins(ctx, "the audit log"); err != nil {
		return api.AuditPage{}, err
	}
	return a.log.Audit(ctx, q)
}
