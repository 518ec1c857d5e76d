package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A Part says which database of a store of several databases one of them is. Each database
// keeps its own part, so that a wrong list of databases is noticed.
type Part struct {
	Cluster string // identifies the databases that belong together
	Number  int    // of this one, from 1
	Of      int    // how many there are

	// Complete says that every database of the cluster has its part. A server that dies
	// while it notes them leaves some without.
	Complete bool
}

// String names the part for people.
func (p Part) String() string { return fmt.Sprintf("database %d of %d", p.Number, p.Of) }

// KindPointer is the kind of an empty session that says in which of several databases
// another one is. The package store/shards creates them, and nothing above it sees them.
const KindPointer tapedeck.SessionKind = "pointer"

// PointerPrefix begins the id of every session of [KindPointer]. The id of the session to
// which it points follows.
const PointerPrefix = "pointer/"

// MaxParts is the largest number of databases of one store.
const MaxParts = 64

// Arrange compares what a list of databases has noted with their places in the list, and
// returns their cluster, "" if they have noted nothing. found[i] is nil if the database i
// has no part; names are for people.
func Arrange(found []*Part, names []string) (cluster string, err error) {
	if err := differ(names); err != nil {
		return "", err
	}
	at := slices.IndexFunc(found, func(p *Part) bool { return p != nil })
	if at < 0 {
		return "", nil
	}
	first := found[at]
	complete := slices.ContainsFunc(found, func(p *Part) bool { return p != nil && p.Complete })
	for i, p := range found {
		if p != nil && p.Cluster != first.Cluster {
			return "", tapedeck.Errorf(tapedeck.Conflict, "%s and %s do not belong together: each is one of several databases, of different stores", names[at], names[i]).
				WithHint("give --postgres once for each database of one of them; nothing was changed")
		}
	}
	if i := slices.Index(found, nil); complete && i >= 0 {
		return "", tapedeck.Errorf(tapedeck.Conflict, "%s is %s, but %s is none of these", names[at], first, names[i]).
			WithHint("look at its URL; the sessions are in exactly %d databases, and none can be exchanged for another one", first.Of)
	}
	if len(found) != first.Of {
		return "", wrongCount(found, names, first)
	}
	for i, p := range found {
		if p != nil && p.Number != i+1 {
			return "", tapedeck.Errorf(tapedeck.Conflict, "the databases are in another order: %s is %s, and was given as number %d", names[i], p, i+1).
				WithHint("give --postgres in the order %s", inOrder(found, names))
		}
	}
	return first.Cluster, nil
}

// differ returns an error if a database is in the list twice.
func differ(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return tapedeck.Errorf(tapedeck.Invalid, "%s was given twice", name).WithHint("give --postgres once for each database")
		}
	}
	return nil
}

// wrongCount returns the error for a list that is too short or too long.
func wrongCount(found []*Part, names []string, first *Part) error {
	have := map[int]bool{}
	for _, p := range found {
		if p != nil {
			have[p.Number] = true
		}
	}
	var missing []string
	for n := 1; n <= first.Of; n++ {
		if !have[n] {
			missing = append(missing, fmt.Sprint(n))
		}
	}
	if len(missing) == 0 {
		return tapedeck.Errorf(tapedeck.Conflict, "the sessions are in %d databases, and %d were given", first.Of, len(names)).
			WithHint("give --postgres for these %d only; databases cannot be added to a store that has sessions", first.Of)
	}
	return tapedeck.Errorf(tapedeck.Conflict, "the sessions are in %d databases, and %d were given; missing: number %s", first.Of, len(names), strings.Join(missing, " and ")).
		WithHint("give --postgres once for each database, in the order of their numbers")
}

// inOrder lists the databases in their order.
func inOrder(found []*Part, names []string) string {
	sorted := make([]string, len(names))
	for i := range names {
		at := i
		if p := found[i]; p != nil {
			at = p.Number - 1
		}
		if at >= 0 && at < len(sorted) {
			sorted[at] = names[i]
		}
	}
	return strings.Join(slices.DeleteFunc(sorted, func(s string) bool { return s == "" }), ", ")
}

// NotAlone returns the error for a database that is a part, given as the only one.
func NotAlone(where string, p *Part) error {
	return tapedeck.Errorf(tapedeck.Conflict, "%s is %s: the sessions are in all of them", where, p).
		WithHint("give --postgres once for each database, in the order of their numbers")
}

// NotThatPart returns the error for a database that does not have the part that it must
// have.
func NotThatPart(where string, found, want *Part) error {
	if found == nil {
		return tapedeck.Errorf(tapedeck.Conflict, "%s has sessions of its own, so it cannot become %s", where, want).
			WithHint("use empty databases for a store of several; `tapedeck export` and `tapedeck import` copy sessions")
	}
	return tapedeck.Errorf(tapedeck.Conflict, "%s is %s now, and was to be %s: another server has changed it at this moment", where, found, want).
		WithHint("look at the list of databases, and start again")
}
