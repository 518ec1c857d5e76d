package subscription

import (
	"fmt"
	"strconv"
)

// position returns the offset of the protocol before the record at an offset of the log.
func position(n int64) string { return fmt.Sprintf("%016d_%016d", n, 0) }

// parsePosition returns the number of whole records before an offset of the protocol. A
// worker that has read a part of a record has not acknowledged it.
func parsePosition(s string) (n int64, ok bool) {
	if len(s) != 33 || s[16] != '_' {
		return 0, false
	}
	for i := range len(s) {
		if i != 16 && (s[i] < '0' || s[i] > '9') {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s[:16], 10, 64)
	return n, err == nil
}
