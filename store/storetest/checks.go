package storetest

import (
	"flag"
	"strconv"
	"testing"
)

var thorough = flag.Bool("thorough", false, "run every random and concurrent test of the suites of stores as often as it can find something; takes an hour")

// quick is set by Quick.
var quick bool

// Quick makes random and concurrent tests of the suite have fewer rounds, as with -short, and
// the comparison with the model n runs, unless the flags -thorough or -rapid.checks are given.
// It is for a variant of a store that a test has run in full, and for slow stores.
func Quick(t testing.TB, n int) {
	t.Helper()
	if *thorough {
		return
	}
	FewerChecks(t, n)
	before := quick
	quick = true
	t.Cleanup(func() { quick = before })
}

// FewerChecks makes the comparison with the model run n times in a test, instead of a hundred
// times, unless -rapid.checks says how often. It is for stores that take long to open: each
// run opens them several times.
func FewerChecks(t testing.TB, n int) {
	t.Helper()
	const name = "rapid.checks"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	old := flag.Lookup(name).Value.String()
	if err := flag.Set(name, strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(name, old) })
}
