package shards

import (
	"maps"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Ids calls each with every session of shard i, see the stores.
type Ids func(i int, each func(id string, kind tapedeck.SessionKind, origin string)) error

// Verify checks that each session of n shards is found: that it is where its id or a pointer
// says, and in one shard only. It adds what is wrong to a report. A server may run meanwhile.
func Verify(n int, ids Ids, r *store.Report) error {
	away, err := findAway(n, ids, r)
	if err != nil {
		return err
	}
	lost := maps.Clone(away)
	for i := range n {
		err := ids(i, func(id string, kind tapedeck.SessionKind, origin string) {
			if kind == store.KindPointer {
				of := id[min(len(id), len(store.PointerPrefix)):]
				if at, ok := away[of]; ok && Home(of, n) == i && origin == strconv.Itoa(at) {
					delete(lost, of)
				}
			} else if at, ok := away[id]; ok && at != i {
				r.Problem("session %q is in database %d and in database %d", id, i+1, at+1)
			}
		})
		if err != nil {
			return err
		}
	}
	if len(lost) == 0 {
		return nil
	}
	// A fork that was deleted meanwhile has lost its pointer with it.
	still, err := findAway(n, ids, new(store.Report))
	for _, id := range slices.Sorted(maps.Keys(lost)) {
		if at, ok := still[id]; ok && at == lost[id] {
			r.Problem("session %q is in database %d, and nothing in database %d, to which its id belongs, says so: it cannot be read", id, at+1, Home(id, n)+1)
		}
	}
	return err
}

// findAway returns the sessions that are not in the shard to which their id belongs, with
// the number of their shard.
func findAway(n int, ids Ids, r *store.Report) (map[string]int, error) {
	away := map[string]int{}
	for i := range n {
		err := ids(i, func(id string, kind tapedeck.SessionKind, _ string) {
			if kind != tapedeck.KindSession && kind != tapedeck.KindStream || Home(id, n) == i {
				return
			}
			if other, ok := away[id]; ok {
				r.Problem("session %q is in database %d and in database %d", id, other+1, i+1)
			}
			away[id] = i
		})
		if err != nil {
			return nil, err
		}
	}
	return away, nil
}
