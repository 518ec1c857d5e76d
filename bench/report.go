package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// A report collects rows for docs/benchmarks.md.
type report struct {
	only   string
	pairs  []string
	floors []string
	solos  []string
	notes  []string

	inMemory map[int]float64 // appends per second of the reference server in memory, by connections
}

func (r *report) wants(name string) bool { return strings.Contains(name, r.only) }

// pair adds a row that compares the medians of both servers.
func (r *report) pair(w row, file bool, ours, rivals []float64) {
	a, b := quantile(ours, .5), quantile(rivals, .5)
	ratio := 0.0
	if b > 0 {
		ratio = a / b
	}
	goal, met := "", true
	switch {
	case w.floor == 0:
	case w.atMost:
		goal, met = fmt.Sprintf("≤ %.2g×", w.floor), ratio <= w.floor
	default:
		goal, met = fmt.Sprintf("≥ %.2g×", w.floor), ratio >= w.floor
	}
	mode := "memory"
	if file {
		mode = "files"
	}
	r.pairs = append(r.pairs, fmt.Sprintf("| %s | %s | %s %s | %s (%s) | **%.2f×** | %s%s |",
		w.name, number(a), w.unit, spread(ours), number(b), mode, ratio, goal, mark(goal, met)))
	fmt.Fprintln(os.Stderr, r.pairs[len(r.pairs)-1])
}

// floor adds the row of a floor server, compared with the reference server in memory.
func (r *report) floor(connections int, name string, rate, cost float64) {
	ratio := ""
	if b := r.inMemory[connections]; b > 0 {
		ratio = fmt.Sprintf("%.2f×", rate/b)
	}
	r.floors = append(r.floors, fmt.Sprintf("| %s | %s appends/s | %s µs | %s |", name, number(rate), number(cost), ratio))
	fmt.Fprintln(os.Stderr, r.floors[len(r.floors)-1])
}

// alone adds a row without a comparison.
func (r *report) alone(name, figure, goal string, met bool) {
	r.solos = append(r.solos, fmt.Sprintf("| %s | %s | %s%s |", name, figure, goal, mark(goal, met)))
	fmt.Fprintln(os.Stderr, r.solos[len(r.solos)-1])
}

func (r *report) note(s string) { r.notes = append(r.notes, s) }

func mark(goal string, met bool) string {
	switch {
	case goal == "":
		return ""
	case met:
		return " ✓"
	}
	return " ✗"
}

func spread(x []float64) string {
	return fmt.Sprintf("(%s–%s)", number(quantile(x, 0)), number(quantile(x, 1)))
}

func number(x float64) string {
	switch {
	case x >= 1000:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func (r *report) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# Benchmarks\n\nWritten by `make bench`; do not edit.\n\n")
	fmt.Fprintf(b, "Machine: %s, %d processors, %s %s, Go %s, Node %s. Measured %s.\n\n", cpuModel(), runtime.NumCPU(),
		runtime.GOOS, kernel(), strings.TrimPrefix(runtime.Version(), "go"), nodeVersion(), time.Now().UTC().Format("2006-01-02"))
	fmt.Fprint(b, "The load generator runs on the same machine as the server. Both servers are loaded in turn, each round on a new\n"+
		"process. Figures are medians over the rounds; the lowest and highest values of Tapedeck are in brackets. On a shared machine\nonly the ratios mean anything.\n\n"+
		"One thread sends the appends. It keeps its connections open, sends prebuilt requests and checks the status and the length of\n"+
		"every answer, as wrk, oha and autocannon do, so the server gets most of the processor time. A second row uses Go's own client,\n"+
		"which takes as long for a request as the reference server does. It shows the rate of a program that writes one event after\n"+
		"the other.\n\n")
	if len(r.pairs) > 0 {
		fmt.Fprint(b, "## Against `@durable-streams/server` 0.3.7\n\n"+
			"Tapedeck commits every append to SQLite with fsync before it answers. The reference server in memory writes nothing to disk.\n\n"+
			"| load | Tapedeck | (lowest–highest) | reference server | ratio | goal |\n|---|---|---|---|---|---|\n")
		for _, row := range r.pairs {
			fmt.Fprintln(b, row)
		}
	}
	if len(r.floors) > 0 {
		fmt.Fprint(b, "\n## What this machine allows\n\n"+
			"These servers do much less than a log must do. They get the same load from the same load generator. The first answers and\n"+
			"stores nothing. The second keeps no streams: it writes the bytes of all waiting requests over the beginning of a file, and\n"+
			"answers them after one fsync. If an answer must mean that the append is durable, no server is much faster for a connection\n"+
			"that waits for each answer.\n\n"+
			"| server | rate | server CPU per append | compared with the reference server in memory |\n|---|---|---|---|\n")
		for _, row := range r.floors {
			fmt.Fprintln(b, row)
		}
	}
	if len(r.solos) > 0 {
		fmt.Fprint(b, "\n## Alone\n\n| what | figure | goal |\n|---|---|---|\n")
		for _, row := range r.solos {
			fmt.Fprintln(b, row)
		}
	}
	for _, n := range r.notes {
		fmt.Fprintf(b, "\n- %s\n", n)
	}
	return b.Flush()
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(rest, "\t :"))
		}
	}
	return runtime.GOARCH
}

func kernel() string { return output("uname", "-r") }

func nodeVersion() string { return strings.TrimPrefix(output("node", "--version"), "v") }

func output(name string, args ...string) string {
	b, err := exec.Command(name, args...).Output()
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b))
}
