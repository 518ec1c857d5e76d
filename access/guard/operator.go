package guard

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// An Operator knows how the server is.
type Operator interface {
	Stats(ctx context.Context) (api.Stats, error)
}

// Operate guards an operator: the server as a whole is for admins.
func Operate(o Operator) Operator { return operated{o} }

type operated struct{ operator Operator }

// Stats describes the server.
func (o operated) Stats(ctx context.Context) (api.Stats, error) {
	i, err := who(ctx)
	if err != nil {
		return api.Stats{}, err
	}
	if !i.IsUnlimited() {
		return api.Stats{}, tapedeck.Errorf(tapedeck.Forbidden, "this token may not see the statistics of the server; they are for admins")
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
	i, err := who(ctx)
	if err != nil {
		return api.AuditPage{}, err
	}
	if !i.IsUnlimited() {
		return api.AuditPage{}, tapedeck.Errorf(tapedeck.Forbidden, "this token may not see the audit log; it is for admins")
	}
	return a.log.Audit(ctx, q)
}
