package view

import (
	"slices"
	"strconv"
	"strings"
)

// maxCells bounds the work of a comparison: items of one side times items of
// the other.
const maxCells = 1 << 20

// contextLines is the number of equal lines shown on each side of a change.
const contextLines = 2

// A hunk is a run of equal items, followed by the items of a that the items of
// b replace.
type hunk[T any] struct {
	same []T
	a, b []T
}

// hunks splits two lists along their longest common subsequence. If the lists
// are too long for that, only the equal items at both ends count as common.
func hunks[T any](a, b []T, same func(a, b T) bool) []hunk[T] {
	head := 0
	for head < min(len(a), len(b)) && same(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && same(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	end := a[len(a)-tail:]
	out := middleHunks(a[:head], a[head:len(a)-tail], b[head:len(b)-tail], same)
	return append(out, hunk[T]{same: end})
}

// middleHunks splits lists that begin and end differently. before are the equal
// items in front of them.
func middleHunks[T any](before, a, b []T, same func(a, b T) bool) []hunk[T] {
	h := hunk[T]{same: before}
	if len(a)*len(b) > maxCells {
		h.a, h.b = a, b
		return []hunk[T]{h}
	}
	length := lcs(a, b, same)
	var out []hunk[T]
	i, j, w := 0, 0, len(b)+1
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && same(a[i], b[j]):
			if len(h.a)+len(h.b) > 0 {
				out, h = append(out, h), hunk[T]{}
			}
			h.same = append(slices.Clip(h.same), a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && length[(i+1)*w+j] >= length[i*w+j+1]:
			h.a = append(h.a, a[i])
			i++
		default:
			h.b = append(h.b, b[j])
			j++
		}
	}
	return append(out, h)
}

// lcs returns, for each pair of suffixes of a and b, the length of their
// longest common subsequence.
func lcs[T any](a, b []T, same func(a, b T) bool) []int32 {
	w := len(b) + 1
	length := make([]int32, (len(a)+1)*w)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same(a[i], b[j]) {
				length[i*w+j] = length[(i+1)*w+j+1] + 1
			} else {
				length[i*w+j] = max(length[(i+1)*w+j], length[i*w+j+1])
			}
		}
	}
	return length
}

// diffText returns the lines that differ between two texts, with contextLines
// around them. It returns nil if the texts are the same.
func diffText(a, b string) []DiffLine {
	if a == b {
		return nil
	}
	all := hunks(textLines(a), textLines(b), func(a, b string) bool { return a == b })
	var out []DiffLine
	for i, h := range all {
		out = append(out, around(h.same, i > 0, i < len(all)-1)...)
		for _, l := range h.a {
			out = append(out, DiffLine{"-", l})
		}
		for _, l := range h.b {
			out = append(out, DiffLine{"+", l})
		}
	}
	return out
}

func textLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// around returns the first and last of equal lines as context of a change
// before and after them, with the number of omitted lines in between.
func around(same []string, before, after bool) []DiffLine {
	head, tail := 0, 0
	if before {
		head = min(contextLines, len(same))
	}
	if after {
		tail = min(contextLines, len(same)-head)
	}
	if left := len(same) - head - tail; left == 1 { // a line of text is not longer than the count
		head++
	}
	var out []DiffLine
	for _, l := range same[:head] {
		out = append(out, DiffLine{" ", l})
	}
	if left := len(same) - head - tail; left > 0 {
		out = append(out, DiffLine{"@", strconv.Itoa(left) + " lines are the same"})
	}
	for _, l := range same[len(same)-tail:] {
		out = append(out, DiffLine{" ", l})
	}
	return out
}
