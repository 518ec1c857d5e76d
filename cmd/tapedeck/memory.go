package main

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck/internal/intake"
)

// leastMemory is the lowest limit that a server can work with.
const leastMemory = 64 << 20

// limitMemory tells the garbage collector how much memory the process may take,
// and returns the limit, 0 for none: that of the flag, else that of the
// environment variable GOMEMLIMIT, else four fifths of what the control group
// allows. The rest is for what Go does not count, such as SQLite's pages.
func limitMemory(flag int64) int64 {
	switch known := debug.SetMemoryLimit(-1); {
	case flag > 0:
		debug.SetMemoryLimit(flag)
		return flag
	case known < math.MaxInt64: // GOMEMLIMIT
		return known
	}
	allowed := groupLimit("/sys/fs/cgroup", "/proc/self/cgroup")
	if allowed == 0 {
		return 0
	}
	limit := allowed / 5 * 4
	debug.SetMemoryLimit(limit)
	return limit
}

// groupLimit returns how many bytes the control group of the process may use, 0
// for no limit, or where there are no control groups.
func groupLimit(root, self string) int64 {
	b, err := os.ReadFile(self)
	if err != nil {
		return 0
	}
	lowest := int64(0)
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok || controllers != "" && controllers != "memory" {
			continue
		}
		file, dir := "memory.max", root
		if controllers == "memory" { // the first version of control groups
			file, dir = "memory.limit_in_bytes", filepath.Join(root, "memory")
		}
		for group = filepath.Clean("/" + group); ; group = filepath.Dir(group) {
			if n := readLimit(filepath.Join(dir, group, file)); n > 0 && (lowest == 0 || n < lowest) {
				lowest = n
			}
			if group == "/" {
				break
			}
		}
	}
	return lowest
}

// unlimited is near the number with which the first version says "no limit".
const unlimited = 1 << 60

func readLimit(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n <= 0 || n >= unlimited { // "max"
		return 0
	}
	return n
}

// bodyBudget returns how much memory the bodies of requests may take together,
// and the largest body: one must fit into what large bodies may use of it, which
// is three quarters. An append needs about six times its body.
func bodyBudget(limit, maxBody int64, log *slog.Logger) (budget, most int64) {
	budget = max(intake.DefaultBudget, maxBody/3*4+1)
	if limit > 0 {
		budget = min(budget, limit/6)
	}
	most = min(maxBody, budget/4*3)
	if most < maxBody {
		log.Warn("the memory limit allows no larger body", "bytes", most, "--max-body", maxBody, "memory limit", limit)
	}
	return budget, most
}

// mostConnections is the limit of connections where descriptors set none: so many
// followers take about 2 GiB.
const mostConnections = 1 << 16

// connectionLimit returns how many connections there may be with so many
// descriptors. A quarter of these, and 64 at least, are for the database and for
// agents.
func connectionLimit(descriptors uint64) int {
	if descriptors == 0 || descriptors > 2*mostConnections {
		return mostConnections
	}
	n := int(descriptors)
	return min(mostConnections, max(n-max(n/4, 64), 16))
}
