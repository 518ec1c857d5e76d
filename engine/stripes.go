package engine

import (
	"hash/maphash"
	"sync"
)

// stripes are locks of sessions. Two sessions may have the same lock, so nobody may hold two.
type stripes [256]sync.Mutex

var stripeSeed = maphash.MakeSeed()

// lock locks a session, and returns what unlocks it.
func (s *stripes) lock(session string) (unlock func()) {
	m := &s[maphash.String(stripeSeed, session)%uint64(len(s))]
	m.Lock()
	return m.Unlock
}
