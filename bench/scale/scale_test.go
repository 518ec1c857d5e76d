package main

import (
	"bytes"
	"flag"
	"io"
	"math"
	"strings"
	"testing"
)

func defaults(t *testing.T, args ...string) (load, costs, []input, error) {
	t.Helper()
	var l load
	var c costs
	in := inputs(&l, &c)
	fs := flag.NewFlagSet("scale", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	register(fs, in)
	if err := fs.Parse(args); err != nil {
		return l, c, in, err
	}
	return l, c, in, check(in)
}

func flat(n int) spread { return spread{mean: 1, most: 1} }

// Another database takes its part of the trees, and moves no tree between the others.
func TestPlaceMovesOnlyToTheNewDatabase(t *testing.T) {
	const trees = 20_000
	for n := 1; n < 12; n++ {
		taken := 0
		for i := range trees {
			before, after := place(rootID(i), n), place(rootID(i), n+1)
			switch {
			case after == n:
				taken++
			case after != before:
				t.Fatalf("tree %d moves from %d to %d when database %d comes", i, before, after, n)
			}
		}
		if want := trees / float64(n+1); math.Abs(float64(taken)-want) > 5*math.Sqrt(want) {
			t.Errorf("database %d takes %d trees, %.0f is its part", n, taken, want)
		}
	}
}

func TestPlaceIsEven(t *testing.T) {
	const trees, databases = 100_000, 16
	loads := make([]float64, databases)
	for i := range trees {
		loads[place(rootID(i), databases)]++
	}
	if s := spreadOf(loads); s.over() > 0.05 {
		t.Errorf("the fullest database has %.1f %% more than the mean", 100*s.over())
	}
}

func TestSimulateIsRepeatable(t *testing.T) {
	l, c, _, err := defaults(t, "-sessions", "5000")
	if err != nil {
		t.Fatal(err)
	}
	a, b, other := simulate(l, c, 5, 7), simulate(l, c, 5, 7), simulate(l, c, 5, 8)
	if a.peak != b.peak || a.moved != b.moved || a.lists != b.lists {
		t.Error("the same seed gives another day")
	}
	if a.peak == other.peak {
		t.Error("another seed gives the same day")
	}
	total := 0.0
	for _, n := range a.sessions {
		total += n
	}
	if total != 5000 {
		t.Errorf("the day has %.0f sessions", total)
	}
}

// All databases together always suffice for what the plan says, and one less does not.
func TestPlanIsTheSmallest(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-tokens", "2e6"}, {"-sessions", "0", "-tokens", "0"}, {"-seal-after", "0", "-keep", "400"}, {"-followers", "2e7"}, {"-opens", "1e5", "-immutable", "0"},
	} {
		l, c, _, err := defaults(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		p := planned(l, c, 0, flat)
		enough := func(n int) bool {
			for _, x := range l.ofDatabases(c) {
				if !x.All && x.machines(c.Full, 0) > float64(n) {
					return false
				}
			}
			return true
		}
		if !enough(p.Databases) || p.Databases > 1 && enough(p.Databases-1) {
			t.Errorf("%v: the plan has %d databases", args, p.Databases)
		}
		for _, x := range l.ofServers(c) {
			if x.machines(c.Full, 0) > float64(p.Servers-1) {
				t.Errorf("%v: with one server down, %d servers do not carry %s", args, p.Servers, x.Name)
			}
		}
	}
}

func TestPlanNamesTheFirstLimit(t *testing.T) {
	for _, test := range []struct{ database, server, args string }{
		{"events stored", "memory of followers", ""},
		{"disk", "memory of followers", "-seal-after 0"},
		{"events read for openings", "deliveries", "-opens 50000 -immutable 0"},
		{"events stored", "deliveries", "-watching 1"},
	} {
		l, c, _, err := defaults(t, strings.Fields(test.args)...)
		if err != nil {
			t.Fatal(err)
		}
		p := planned(l, c, 0, flat)
		if p.FirstDatabase.Name != test.database || p.FirstServer.Name != test.server {
			t.Errorf("%s: the limits are %q and %q", test.args, p.FirstDatabase.Name, p.FirstServer.Name)
		}
	}
}

// A list asks each database, so no number of databases helps.
func TestListsThatDoNotFit(t *testing.T) {
	l, c, in, err := defaults(t, "-lists", "5000", "-sessions", "1000")
	if err != nil {
		t.Fatal(err)
	}
	p := planned(l, c, 0, flat)
	if p.ListsFit {
		t.Fatal("5,000 lists a second fit on databases that answer 1,500")
	}
	var b bytes.Buffer
	report(&b, in, l, c, p, simulate(l, c, p.Databases, 1))
	if !strings.Contains(b.String(), "Lists do not fit") {
		t.Error("the report does not say it")
	}
}

func TestAListWaitsForTheSlowest(t *testing.T) {
	l, c, _, _ := defaults(t, "-sessions", "10")
	one, many := simulate(l, c, 1, 1), simulate(l, c, 64, 1)
	if many.lists.p50 < 2*one.lists.p50 {
		t.Errorf("the median is %.0f ms with one database and %.0f ms with 64", one.lists.p50, many.lists.p50)
	}
}

// A session that is longer than a minute goes on in the next ones, also past midnight.
func TestOccur(t *testing.T) {
	got := make([]float64, minutes)
	occur(got, minutes-2, 25, 10)
	if got[minutes-2] != 10 || got[minutes-1] != 10 || got[0] != 5 || got[1] != 0 {
		t.Errorf("it has %v, %v, then %v and %v", got[minutes-2], got[minutes-1], got[0], got[1])
	}
}

func TestBadInput(t *testing.T) {
	for args, want := range map[string]string{
		"-tokens -1": "-tokens must be a number from 0 on", "-tokens NaN": "-tokens must be", "-keep 1e300": "-keep must be",
		"-watching 1.5": "-watching is a part", "-rate 0": "-rate must be above 0", "-full 0": "-full must be above 0",
	} {
		if _, _, _, err := defaults(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", args, err)
		}
	}
	if err := run([]string{"-databases", "5000"}); err != errDatabases {
		t.Errorf("the error is %v", err)
	}
}
