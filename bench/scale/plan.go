package main

import (
	"math"
	"slices"
)

// A need is one thing that the load asks for, and what one machine has of it.
type need struct {
	Name   string
	Asks   float64
	Has    float64 // of one machine
	Unit   string
	Spread bool // the asks of the fullest database count, not the mean
	All    bool // each machine gets all of it: more machines do not help
}

// machines returns how many machines the need takes, if none is filled above full.
func (n need) machines(full, over float64) float64 {
	if n.Spread {
		full /= 1 + over
	}
	return n.Asks / (n.Has * full)
}

// speaking is the number of sessions that speak at the peak.
func (l load) speaking() float64 { return l.Tokens / l.Rate }

// tokensADay assumes that the mean of a day is a third of the peak.
func (l load) tokensADay() float64 { return l.Tokens / 3 * 86400 }

// writes is how many events are stored in a second at the peak: pieces of text, and what
// else belongs to sessions, of which three times as many begin at the peak as on average.
func (l load) writes(c costs) float64 {
	return l.speaking()*min(c.Pieces, l.Rate) + 3*l.Sessions*l.Events/86400
}

// bytesADay is what a day adds to the databases.
func (l load) bytesADay(c costs) float64 {
	return l.tokensADay()*c.TokenBytes + l.Sessions*l.Events*c.EventBytes
}

// onDisk is what lies on the databases, and inObjects what lies sealed in the object store.
func (l load) onDisk(c costs) float64 { return l.bytesADay(c) * l.hot(c) }

func (l load) inObjects(c costs) float64 {
	return l.bytesADay(c) * (l.Keep - l.hot(c)) * c.SealedPart
}

// hot is for how many days events lie in a database.
func (l load) hot(c costs) float64 {
	if c.SealAfter == 0 {
		return l.Keep
	}
	return min(c.SealAfter, l.Keep)
}

// eventsOf is the number of events of a whole session.
func (l load) eventsOf(c costs) float64 {
	if l.Sessions == 0 {
		return l.Events
	}
	return l.Events + l.tokensADay()/l.Sessions*min(c.Pieces, l.Rate)/l.Rate
}

func (l load) ofDatabases(c costs) []need {
	return []need{
		{Name: "events stored", Asks: l.writes(c), Has: c.DatabaseEvents, Unit: "/s", Spread: true},
		{Name: "events read for openings", Asks: l.Opens * (1 - c.Immutable) * l.eventsOf(c), Has: c.ReplayEvents, Unit: "/s", Spread: true},
		{Name: "disk", Asks: l.onDisk(c), Has: c.DatabaseDisk, Unit: "B", Spread: true},
		{Name: "lists, asked of each database", Asks: l.Lists, Has: c.ListRequests, Unit: "/s", All: true},
	}
}

func (l load) ofServers(c costs) []need {
	delivered := l.Followers * l.Watching * min(c.Pieces, l.Rate)
	return []need{
		{Name: "deliveries", Asks: delivered + l.Opens*l.eventsOf(c)*(1-c.Immutable), Has: c.ServerEvents * c.ServerCores, Unit: "/s"},
		{Name: "memory of followers", Asks: l.Followers * c.FollowerBytes, Has: c.ServerMemory, Unit: "B"},
	}
}

// A plan is how many machines a load takes, and why.
type plan struct {
	Databases, Servers int
	FirstDatabase      need // the limits that come first
	FirstServer        need
	ListsFit           bool
	Spread             spread
}

// planned returns the plan for a load. over is how much fuller than the mean the fullest
// of n databases is. databases fixes their number, 0 finds it.
func planned(l load, c costs, databases int, over func(n int) spread) plan {
	p := plan{Databases: databases, ListsFit: true}
	most := func(needs []need, over float64) (need, float64) {
		worst, count := need{}, 0.0
		for _, n := range needs {
			if n.All {
				p.ListsFit = n.Asks <= n.Has*c.Full
				continue
			}
			if m := n.machines(c.Full, over); m > count || worst.Name == "" {
				worst, count = n, m
			}
		}
		return worst, count
	}
	for n := max(1, databases); ; n++ {
		p.Spread = over(n)
		first, machines := most(l.ofDatabases(c), p.Spread.over())
		p.FirstDatabase = first
		if databases > 0 || machines <= float64(n) || n == mostDatabases {
			p.Databases = n
			break
		}
		n = max(n, int(math.Min(machines, mostDatabases))-1) // at least so many
	}
	first, machines := most(l.ofServers(c), 0)
	p.FirstServer, p.Servers = first, int(math.Ceil(machines))+1 // one may fail
	return p
}

const mostDatabases = 4096

// dollars returns what the plan costs a month, by part.
func (p plan) dollars(l load, c costs) []item {
	items := []item{
		{"servers", float64(p.Servers) * c.PriceServer},
		{"databases with their standbys", float64(p.Databases) * c.PriceDatabase},
		{"disks of databases", l.onDisk(c) / 1e9 / c.Full * c.PriceDisk},
		{"object store", l.inObjects(c) / 1e9 * c.PriceObject},
	}
	return append(items, item{"together", sum(items)})
}

type item struct {
	name  string
	value float64
}

func sum(items []item) (out float64) {
	for i := range slices.Values(items) {
		out += i.value
	}
	return out
}
