package main

import "testing"

// TestTrim: memory is returned after followers connected or disconnected, and if much
// of it is unused. While the server works it is kept.
func TestTrim(t *testing.T) {
	var tr trimmer
	for _, c := range []struct {
		name      string
		followers int
		heap      heap
		want      bool
	}{
		{"at rest", 0, heap{10 << 20, 4 << 20, 40 << 20}, false},
		{"followers come", 200, heap{10 << 20, 5 << 20, 40 << 20}, false},
		{"they have come", 200, heap{10 << 20, 6 << 20, 40 << 20}, true},
		{"they stay", 200, heap{10 << 20, 7 << 20, 40 << 20}, false},
		{"work", 200, heap{300 << 20, 900 << 20, 40 << 20}, false},
		{"it is over", 200, heap{300 << 20, 901 << 20, 40 << 20}, true},
		{"afterwards", 200, heap{1 << 20, 902 << 20, 40 << 20}, false},
		{"large records", 200, heap{1 << 20, 990 << 20, 200 << 20}, false},
		{"more of them", 200, heap{1 << 20, 1090 << 20, 200 << 20}, false},
		{"they were sent after the last collection", 200, heap{1 << 20, 1091 << 20, 200 << 20}, true},
		{"once", 200, heap{1 << 20, 1092 << 20, 40 << 20}, false},
		{"garbage of a large heap", 200, heap{30 << 20, 1093 << 20, 400 << 20}, false},
		{"followers disconnect", 20, heap{1 << 20, 1094 << 20, 40 << 20}, false},
		{"they have disconnected", 20, heap{1 << 20, 1095 << 20, 40 << 20}, true},
	} {
		if got := tr.due(c.followers, c.heap); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
