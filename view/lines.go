package view

import (
	"slices"
	"strings"
)

// maxDiff bounds the work of the diffs of one tool call: the sum of lines
// before times lines after.
const maxDiff = 1 << 20

// lineDiff counts the lines that a replacement adds and removes. Equal lines at
// the beginning and the end count as common, and so does the longest common
// subsequence of the rest. If that costs more than is left of the budget, the
// rest has no common lines.
func lineDiff(before, after string, budget *int) (added, removed int64) {
	a, b := splitLines(before), splitLines(after)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	common := 0
	if work := len(a) * len(b); work <= *budget {
		*budget -= work
		common = commonLines(a, b)
	}
	return int64(len(b) - common), int64(len(a) - common)
}

// commonLines returns the length of the longest common subsequence.
func commonLines(a, b []string) int {
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for _, x := range a {
		for j, y := range b {
			if x == y {
				row[j+1] = last[j] + 1
			} else {
				row[j+1] = max(row[j], last[j+1])
			}
		}
		last, row = row, last
	}
	return last[len(b)]
}

// splitLines returns the lines of a text without their ends. Text after the
// last end is a line, too.
func splitLines(s string) []string {
	lines := strings.Split(s, "\n")
	if n := len(lines) - 1; lines[n] == "" {
		lines = lines[:n]
	}
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return slices.Clip(lines)
}

func countLines(s string) int64 {
	n := int64(strings.Count(s, "\n"))
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
