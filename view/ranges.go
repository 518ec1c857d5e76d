package view

import (
	"cmp"
	"slices"

	"github.com/tapedeck/tapedeck"
)

// The lists of ranges in this file are sorted; no range is empty or touches the
// next.

// join returns the offsets that are in a or in b.
func join(a, b []tapedeck.OffsetRange) []tapedeck.OffsetRange {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b tapedeck.OffsetRange) int { return cmp.Compare(a.From, b.From) })
	var out []tapedeck.OffsetRange
	for _, r := range all {
		if n := len(out); n > 0 && r.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, r.To)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// cutOut returns the offsets that are in a and not in b.
func cutOut(a, b []tapedeck.OffsetRange) []tapedeck.OffsetRange {
	var out []tapedeck.OffsetRange
	for _, r := range a {
		for len(b) > 0 && b[0].To <= r.From {
			b = b[1:]
		}
		for _, hole := range b {
			if hole.From >= r.To {
				break
			}
			if hole.From > r.From {
				out = append(out, tapedeck.OffsetRange{From: r.From, To: hole.From})
			}
			r.From = max(r.From, hole.To)
		}
		if r.From < r.To {
			out = append(out, r)
		}
	}
	return out
}
