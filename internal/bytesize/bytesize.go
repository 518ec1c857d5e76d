// Package bytesize reads and writes numbers of bytes as people do, such as 64MiB.
package bytesize

import (
	"fmt"
	"strconv"
	"strings"
)

var units = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

// Parse reads a number of bytes above 0, with an optional unit.
func Parse(s string) (int64, error) {
	num, factor := s, int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(s, u.suffix); ok {
			num, factor = n, u.factor
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(num), 10, 64)
	if err != nil || n <= 0 || n > (1<<40)/factor {
		return 0, fmt.Errorf("%q is not a size such as 64MiB", s)
	}
	return n * factor, nil
}

// Text returns a number of bytes with the largest unit of which it is a multiple.
func Text(n int64) string {
	for _, u := range []int{2, 1, 0} { // GiB, MiB, KiB
		if f := units[u].factor; n >= f && n%f == 0 {
			return fmt.Sprintf("%d %s", n/f, units[u].suffix)
		}
	}
	return fmt.Sprintf("%d B", n)
}
