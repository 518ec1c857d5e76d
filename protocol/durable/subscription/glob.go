package subscription

import (
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A glob is a pattern of paths, in segments: "**" stands for any number of segments, and
// "*" within a segment for any text. The empty glob matches nothing.
type glob []string

const anySegments = "**"

func checkPattern(p string) error {
	if p == "" {
		return nil
	}
	if len(p) > maxPattern {
		return invalid("the pattern has more than %d bytes", maxPattern)
	}
	if err := tapedeck.CheckPath(p); err != nil {
		return invalid("%.200q is not a pattern of paths", p).because(err)
	}
	for _, s := range parseGlob(p) {
		if s != anySegments && strings.Contains(s, anySegments) {
			return invalid("** is a part of a segment in %.200q", p).hint("use ** as a whole segment, as in events/**")
		}
	}
	return nil
}

func parseGlob(p string) glob {
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

// match reports whether g matches a path. Its time is at most the product of both
// lengths, whatever the pattern: only the newest wildcard is tried again.
func (g glob) match(path string) bool {
	segments := strings.Split(path, "/")
	return len(g) > 0 && wild(len(g), len(segments),
		func(i int) bool { return g[i] == anySegments },
		func(i, j int) bool { return matchSegment(g[i], segments[j]) })
}

// matchSegment reports whether a segment of a pattern matches one of a path.
func matchSegment(pattern, s string) bool {
	return wild(len(pattern), len(s),
		func(i int) bool { return pattern[i] == '*' },
		func(i, j int) bool { return pattern[i] == s[j] })
}

// wild reports whether a pattern of n elements matches m elements. An element of the
// pattern may be a wildcard for any number of them.
func wild(n, m int, isWild func(i int) bool, equal func(i, j int) bool) bool {
	i, j := 0, 0
	star, after := -1, 0 // the newest wildcard, and the element after those that it stands for
	for j < m {
		switch {
		case i < n && isWild(i):
			star, after = i, j
			i++
		case i < n && equal(i, j):
			i, j = i+1, j+1
		case star >= 0:
			after++
			i, j = star+1, after
		default:
			return false
		}
	}
	for i < n && isWild(i) {
		i++
	}
	return i == n
}
