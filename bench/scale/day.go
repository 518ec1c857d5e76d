package main

import (
	"math"
	"math/rand/v2"
)

// A day is a simulated day: every session gets a tree, a size and a time, and lies on the
// database of its tree.
type day struct {
	databases int
	sessions  []float64 // by database
	events    []float64
	peak      float64 // the most events of one database in one minute
	peakMean  float64 // of all databases in that minute
	moved     float64 // part of the trees that another database would take
	pointers  float64 // forks whose own id lies on another database than their tree
	lists     quantiles
}

// sample is how many sessions a simulated day has at most. The spread of more is smaller.
const sample = 2_000_000

const minutes = 24 * 60

// simulate runs a day of the load on so many databases. The same seed gives the same day.
func simulate(l load, c costs, databases int, seed uint64) day {
	r := rand.New(rand.NewPCG(seed, 1))
	d := day{databases: databases, sessions: make([]float64, databases), events: make([]float64, databases)}
	n := int(min(l.Sessions, sample))
	byMinute := make([]float64, databases*minutes)
	size := l.eventsOf(c)
	trees, moved, forks, pointers := 0, 0, 0, 0
	for i := range n {
		tree := rootID(i)
		if i > 0 && r.Float64() < l.Forks {
			forks++
			tree = rootID(ancestor(r, i))
			if place(rootID(i), databases) != place(tree, databases) {
				pointers++
			}
		} else {
			trees++
			if place(tree, databases+1) == databases {
				moved++
			}
		}
		at := place(tree, databases)
		events := size * heavy(r)
		d.sessions[at]++
		d.events[at] += events
		occur(byMinute[at*minutes:(at+1)*minutes], minute(r), events, max(1, min(c.Pieces, l.Rate)*60))
	}
	d.moved = part(moved, trees)
	d.pointers = part(pointers, forks)
	d.peak, d.peakMean = busiest(byMinute, databases)
	d.lists = scattered(r, databases)
	return d
}

// occur adds the events of a session to its minutes, not more than most to each.
func occur(byMinute []float64, from int, events, most float64) {
	for m := from; events > 0; m++ {
		now := min(events, most)
		byMinute[m%minutes] += now
		events -= now
	}
}

func part(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// ancestor chooses the session that a fork begins from: mostly one of the newest, so that
// some trees become large. It forks the beginning of a tree, which is on the same
// database as all of it.
func ancestor(r *rand.Rand, i int) int {
	back := int(math.Pow(r.Float64(), 3)*float64(min(i, 10_000))) + 1
	return i - min(back, i)
}

// heavy returns the size of a session, with mean 1: most are small, a few are very large
// (a log-normal distribution; the largest of a thousand has some 60 times the median).
func heavy(r *rand.Rand) float64 {
	const sigma = 1.3
	return math.Exp(sigma*r.NormFloat64() - sigma*sigma/2)
}

// minute returns when a session runs: half of all in the eight hours of the working day.
func minute(r *rand.Rand) int {
	if r.Float64() < 0.5 {
		return 9*60 + r.IntN(8*60)
	}
	return r.IntN(minutes)
}

// busiest returns the most events of a database in a minute, and the mean of all then.
func busiest(byMinute []float64, databases int) (most, mean float64) {
	at := 0
	for i, v := range byMinute {
		if v > most {
			most, at = v, i%minutes
		}
	}
	for i := range databases {
		mean += byMinute[i*minutes+at] / float64(databases)
	}
	return most, mean
}

// quantiles are times in milliseconds.
type quantiles struct{ p50, p99 float64 }

// scattered returns how long a list takes that waits for all databases. One of them takes
// 4 ms in the median, and one answer in a hundred takes some 30 ms.
func scattered(r *rand.Rand, databases int) quantiles {
	const rounds = 2000
	times := make([]float64, rounds)
	for i := range times {
		for range databases {
			times[i] = max(times[i], 4*math.Exp(0.85*r.NormFloat64()))
		}
	}
	return quantiles{quantile(times, 0.5), quantile(times, 0.99)}
}
