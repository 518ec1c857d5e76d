package deck

import (
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/access/quota"
)

// Issuer returns the issuer of the tokens of sessions.
func (d *Deck) Issuer() *grants.Issuer { return d.issuer }

// Routes returns all routes of a deck: those of the protocols and those of the server.
func (d *Deck) Routes() []string {
	out := []string{"GET /healthz", "GET /readyz", "GET /login", "POST /login", "DELETE /login", "GET /", "GET /sse/api/v1/sessions/{id}", "GET /sse/api/v1/sessions/{id}/events"}
	for _, h := range d.mounted {
		out = append(out, h.(interface{ Routes() []string }).Routes()...)
	}
	return out
}

// Quotas returns what each subject uses.
func (d *Deck) Quotas() *quota.Book { return d.guard.Quotas() }
