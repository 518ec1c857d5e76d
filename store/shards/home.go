package shards

import (
	"hash/fnv"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Home returns the shard to which a key belongs, of n: the one with the highest score
// (rendezvous hashing). If there were one more shard, it would take one key in n+1 from each
// of the others. It never changes: data is stored by it.
func Home(key string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // it never fails
	sum := h.Sum64()
	best, score := 0, uint64(0)
	for i := range n {
		if s := mix(sum ^ mix(uint64(i)+1)); i == 0 || s > score {
			best, score = i, s
		}
	}
	return best
}

// mix spreads the bits of x (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// home returns the shard to which an id belongs. A view belongs to the shard of its session,
// also of a fork: when a session is erased, its shard drops what it may have copies in.
func (s *Store) home(id string) int {
	if rest, ok := strings.CutPrefix(id, tapedeck.ViewPrefix); ok {
		if parts := strings.SplitN(rest, "/", 4); len(parts) == 4 {
			if gen, err := strconv.ParseInt(parts[2], 10, 64); err == nil && s.holds(gen) {
				return shardOf(gen)
			}
		}
	}
	return Home(id, len(s.shards))
}

// Each gen has the shard in its lowest bits, so that what is stored by a gen is found. Above
// them is one number for all shards: lists are in the order of creation.
const shardBits = 6

func shardOf(gen int64) int { return int(gen & (store.MaxParts - 1)) }

// holds reports whether a gen is one of the shards.
func (s *Store) holds(gen int64) bool { return gen > 0 && shardOf(gen) < len(s.shards) }

// Numbers give the sessions of all shards their Gen.
type Numbers struct{ last atomic.Int64 }

// Of returns what the store of shard i calls for the Gen of a new session, with its newest.
func (n *Numbers) Of(i int) func(last int64) int64 {
	return func(last int64) int64 {
		n.saw(last)
		return n.last.Add(1)<<shardBits | int64(i)
	}
}

// saw notes that a gen is in use.
func (n *Numbers) saw(gen int64) {
	for {
		last := n.last.Load()
		if gen>>shardBits <= last || n.last.CompareAndSwap(last, gen>>shardBits) {
			return
		}
	}
}
