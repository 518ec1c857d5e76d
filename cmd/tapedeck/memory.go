package main

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck/internal/bytesize"
	"github.com/tapedeck/tapedeck/internal/intake"
)

// minMemory is the lowest memory limit with which a server works.
const minMemory = 64 << 20

// limitMemory sets the memory limit of the garbage collector and returns it, 0 for
// none: that of the flag, otherwise that of the environment variable GOMEMLIMIT,
// otherwise four fifths of the limit of the control group. The rest is for memory that
// Go does not count, such as SQLite's pages.
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

// groupLimit returns how many bytes the control group of the process may use; 0 if
// there is no limit or no control group.
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
		if controllers == "memory" { // control groups, version 1
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

// unlimited is near the number that means "no limit" in version 1.
const unlimited = 1 << 60

func readLimit(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n <= 0 || n >= unlimited { // "max" in version 2
		return 0
	}
	return n
}

// bodyBudget returns how much memory all request bodies may use together, and the
// largest body. Large bodies may use three quarters of the budget, so one body must
// fit into that. An append needs about six times its body.
func bodyBudget(limit, maxBody int64, log *slog.Logger) (budget, largest int64) {
	budget = max(intake.DefaultBudget, maxBody/3*4+1)
	if limit > 0 {
		budget = min(budget, limit/6)
	}
	largest = min(maxBody, budget/4*3)
	if largest < maxBody {
		log.Warn("the memory limit lowers the largest request body", "bytes", largest, "--max-body", maxBody, "memory limit", limit)
	}
	return budget, largest
}

// maxConnections is the limit of connections if the limit of open files sets no lower
// one. This many followers take about 2 GiB.
const maxConnections = 1 << 16

// connectionLimit returns the limit of connections for a number of file descriptors. A
// quarter of these, and at least 64, are for the database and the agents.
func connectionLimit(descriptors uint64) int {
	if descriptors == 0 || descriptors > 2*maxConnections {
		return maxConnections
	}
	n := int(descriptors)
	return min(maxConnections, max(n-max(n/4, 64), 16))
}

// parseSize reads a number of bytes with an optional unit.
func parseSize(s string) (int64, error) {
	return bytesize.Parse(s)
}
