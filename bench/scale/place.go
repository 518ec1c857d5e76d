package main

import (
	"hash/fnv"
	"math"
	"strconv"
)

// place returns the database of a tree of sessions: the one with the highest score
// (rendezvous hashing). Another database takes one tree in n+1 from each of the others,
// and no tree moves between these.
//
// A tree is a session and all its forks, because forks share the events of their parent
// by reference and must lie beside them. Its key is the id of the session that began it.
func place(tree string, databases int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(tree))
	key := h.Sum64()
	best, score := 0, uint64(0)
	for i := range databases {
		if s := mix(key ^ mix(uint64(i)+1)); i == 0 || s > score {
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

// A spread says how evenly something lies on the databases.
type spread struct {
	mean float64
	most float64 // of the fullest database
}

// over returns how much fuller the fullest database is than the mean, as a part of it.
func (s spread) over() float64 {
	if s.mean == 0 {
		return 0
	}
	return s.most/s.mean - 1
}

func spreadOf(loads []float64) spread {
	s := spread{}
	for _, l := range loads {
		s.mean += l / float64(len(loads))
		s.most = math.Max(s.most, l)
	}
	return s
}

func rootID(i int) string { return "ses_" + strconv.FormatUint(mix(uint64(i)), 36) }
