// Package retention deletes sessions that are old, or too many.
package retention

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A Rule says how long sessions are kept, and how many. 0 is no limit.
type Rule struct {
	Age      time.Duration // a session goes when nothing happened in it for longer
	Sessions int           // of an owner; the ones that were active last stay
}

// A Policy has the rules of all owners. The zero value deletes nothing.
type Policy struct {
	Rule
	Owners map[string]Rule // instead of Rule, for some owners
	Keep   string          // name of the label whose sessions are never deleted; "" for [KeepLabel]
}

// KeepLabel is the label that keeps a session, whatever its value.
const KeepLabel = "keep"

// IsZero reports whether a policy deletes nothing.
func (p *Policy) IsZero() bool {
	for _, r := range p.Owners {
		if r != (Rule{}) {
			return false
		}
	}
	return p.Rule == Rule{}
}

func (p *Policy) of(owner string) Rule {
	if r, ok := p.Owners[owner]; ok {
		return r
	}
	return p.Rule
}

// youngest returns the lowest age at which a session may go; 0 for none.
func (p *Policy) youngest() time.Duration {
	age := p.Age
	for _, r := range p.Owners {
		if r.Age > 0 && (age == 0 || r.Age < age) {
			age = r.Age
		}
	}
	return age
}

// Keeps reports whether a session must stay: it has the label, an open run, an open
// question or an input that waits.
func (p *Policy) Keeps(s *tapedeck.Session) bool {
	return p.isLabelled(s) || len(s.Runs) > 0 || len(s.Waiting) > 0 || len(s.Inputs) > 0
}

func (p *Policy) isLabelled(s *tapedeck.Session) bool {
	label := p.Keep
	if label == "" {
		label = KeepLabel
	}
	_, ok := s.Labels[label]
	return ok
}

// A Candidate is a session that would go.
type Candidate struct {
	Session tapedeck.Session
	Reason  string
}

// A Lister lists sessions.
type Lister interface {
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
}

// pageSize is how many sessions are read at once.
const pageSize = 200

// each yields the sessions that pass a filter, until it is told to stop.
func each(ctx context.Context, l Lister, f tapedeck.Filter) iter.Seq2[*tapedeck.Session, error] {
	return func(yield func(*tapedeck.Session, error) bool) {
		f.Limit = pageSize
		for {
			page, err := l.List(ctx, f)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Sessions {
				if !yield(&page.Sessions[i], nil) {
					return
				}
			}
			if f.Cursor = page.Next; f.Cursor == "" {
				return
			}
		}
	}
}

// latest returns the last time of anything in a session.
func latest(s *tapedeck.Session) time.Time {
	t := s.Created
	for _, other := range []time.Time{s.Updated, s.Active} {
		if other.After(t) {
			t = other
		}
	}
	return t
}

// Old yields the sessions that are too old. It reads the sessions in the order of their
// activity, which has an index, and stops at the first one that is too young for all rules.
func (p *Policy) Old(ctx context.Context, l Lister, now time.Time) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		youngest := p.youngest()
		if youngest == 0 {
			return
		}
		for s, err := range each(ctx, l, tapedeck.Filter{Sort: "activity", Ascending: true}) {
			if err != nil {
				yield(Candidate{}, err)
				return
			}
			at := s.Active // of what the list is sorted by; a client does not know it, and reads on
			if at.IsZero() {
				at = s.Created
			}
			if len(s.Runs) > 0 || at.After(now.Add(-youngest)) {
				return
			}
			age := p.of(s.Owner).Age
			if age == 0 || p.Keeps(s) || latest(s).After(now.Add(-age)) {
				continue
			}
			if !yield(Candidate{*s, fmt.Sprintf("nothing happened for more than %s", days(age))}, nil) {
				return
			}
		}
	}
}

// days writes an age for people.
func days(d time.Duration) string {
	if day := 24 * time.Hour; d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// Surplus yields the sessions that an owner has too many, the ones that were active last
// first. Sessions with the label do not count.
func (p *Policy) Surplus(ctx context.Context, l Lister, owner string) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		limit := p.of(owner).Sessions
		if limit == 0 || owner == "" {
			return
		}
		n := 0
		for s, err := range each(ctx, l, tapedeck.Filter{Owner: owner, Sort: "activity"}) {
			if err != nil {
				yield(Candidate{}, err)
				return
			}
			if p.isLabelled(s) {
				continue
			}
			if n++; n <= limit || p.Keeps(s) {
				continue
			}
			if !yield(Candidate{*s, fmt.Sprintf("%s has more than %d sessions", owner, limit)}, nil) {
				return
			}
		}
	}
}

// Owners calls use with the owner of each session, some several times.
func Owners(ctx context.Context, l Lister, use func(owner string)) error {
	for s, err := range each(ctx, l, tapedeck.Filter{}) {
		if err != nil {
			return err
		}
		use(s.Owner)
	}
	return nil
}
