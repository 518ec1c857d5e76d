package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

// report writes a plan and its simulated day as Markdown.
func report(w io.Writer, in []input, l load, c costs, p plan, d day) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	line("# A plan for %s sessions a day, %s followers, %s tokens/s\n", short(l.Sessions), short(l.Followers), short(l.Tokens))
	line("**%d databases, %d servers.** The first limit of a database is *%s*, that of a server is *%s*.\n", p.Databases, p.Servers, p.FirstDatabase.Name, p.FirstServer.Name)
	if !p.ListsFit {
		line("**Lists do not fit**: each database gets all of them, so more databases do not help. Serve them from read replicas.\n")
	}
	table := func(title string, needs []need, machines int, over float64) {
		line("| %s | the load asks for | one has | of one, at the peak |\n|---|---|---|---|", title)
		for _, n := range needs {
			each := n.Asks / float64(machines)
			if n.Spread {
				each *= 1 + over
			}
			if n.All {
				each = n.Asks
			}
			line("| %s | %s | %s | %.0f %% |", n.Name, amount(n.Asks, n.Unit), amount(n.Has, n.Unit), 100*each/n.Has)
		}
		line("")
	}
	table("database", l.ofDatabases(c), p.Databases, p.Spread.over())
	table("server", l.ofServers(c), max(1, p.Servers-1), 0)
	line("## A simulated day\n")
	line("%s sessions of %.0f events on average.\n", short(min(l.Sessions, sample)), l.eventsOf(c))
	line("| what | figure |\n|---|---|")
	line("| the fullest database has more sessions than the mean, by | %.1f %% |", 100*spreadOf(d.sessions).over())
	line("| … more events | %.1f %% |", 100*spreadOf(d.events).over())
	line("| … more events in its busiest minute | %.0f %% |", 100*(d.peak/math.Max(d.peakMean, 1)-1))
	line("| another database takes this part of the trees | %.1f %% |", 100*d.moved)
	line("| forks whose own id belongs to another database | %.0f %% |", 100*d.pointers)
	line("| a list that waits for all databases: p50, p99 (one database: 4, 29 ms) | %.0f, %.0f ms |", d.lists.p50, d.lists.p99)
	line("\n## Disk and money\n")
	line("A day adds %s. %s lie in databases, %s sealed in the object store.\n", amount(l.bytesADay(c), "B"), amount(l.onDisk(c), "B"), amount(l.inObjects(c), "B"))
	line("| what | dollars a month |\n|---|---|")
	for _, i := range p.dollars(l, c) {
		line("| %s | %.0f |", i.name, i.value)
	}
	line("\n## What it was computed from\n\n| flag | value | |\n|---|---|---|")
	for _, i := range in {
		line("| `-%s` | %s | %s%s |", i.name, amount(*i.to, ""), i.usage, source(i))
	}
}

func source(i input) string {
	switch {
	case *i.to != i.value:
		return " (given)"
	case i.measured:
		return " (measured)"
	}
	return " (assumed)"
}

// amount returns a number with three digits, a prefix and its unit.
func amount(v float64, unit string) string {
	s := short(v)
	if unit == "B" {
		return strings.TrimSpace(s) + "B"
	}
	return s + unit
}

func short(v float64) string {
	prefixes := []string{"", " k", " M", " G", " T", " P"}
	i := 0
	for ; math.Abs(v) >= 1000 && i < len(prefixes)-1; i++ {
		v /= 1000
	}
	text := fmt.Sprintf("%.3g", v)
	if i == 0 {
		return text
	}
	return text + prefixes[i]
}
