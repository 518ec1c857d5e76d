package audit

import (
	"sync"

	"github.com/tapedeck/tapedeck/api"
)

// maxKinds is how many kinds of refusals are told apart in a minute. The others are counted
// together, so that a sender with many addresses or names cannot fill the log.
const maxKinds = 256

// A kind is what refusals have in common that become one record.
type kind struct{ action, actor, role, remote string }

func kindOf(r *api.AuditRecord) kind { return kind{r.Action, r.Actor, r.Role, r.Remote} }

// refusals are the kinds that were seen since the last flush.
type refusals struct {
	mu     sync.Mutex
	seen   map[kind]int64 // how many are not written
	others int64          // of further kinds
}

// isNew reports whether a refusal is the first of its kind; otherwise it is counted.
func (s *refusals) isNew(r *api.AuditRecord) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := kindOf(r)
	if _, ok := s.seen[k]; ok {
		s.seen[k]++
		return false
	}
	if len(s.seen) >= maxKinds {
		s.others++
		return false
	}
	if s.seen == nil {
		s.seen = map[kind]int64{}
	}
	s.seen[k] = 0
	return true
}

// again counts a refusal that was the first of its kind and could not be queued.
func (s *refusals) again(r *api.AuditRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil { // what was seen has been taken meanwhile
		s.seen = map[kind]int64{}
	}
	s.seen[kindOf(r)]++
}

// take returns the records of what was counted, and begins again.
func (s *refusals) take() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*entry
	add := func(k kind, n int64, reason string) {
		if n > 0 {
			out = append(out, &entry{record: api.AuditRecord{
				Action: k.action, Outcome: Refused, Actor: k.actor, Role: k.role, Remote: k.remote, Count: n, Reason: reason,
			}})
		}
	}
	for k, n := range s.seen {
		add(k, n, "more refusals like the one before")
	}
	add(kind{action: Access}, s.others, "refusals of many further senders")
	s.seen, s.others = nil, 0
	return out
}
