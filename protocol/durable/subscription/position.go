package subscription

import (
	"fmt"
	"strconv"
)

// positionOf returns the offset of the protocol before the record at an offset of the log, of
// the stream with a Gen. A gen of 0 is not known.
func positionOf(gen, n int64) string {
	if gen == 0 {
		return position(n)
	}
	return fmt.Sprintf("%s_%d", position(n), gen)
}

// position is positionOf without a Gen.
func position(n int64) string { return fmt.Sprintf("%016d_%016d", n, 0) }

// parsePosition returns the number of whole records before an offset of the protocol, and the
// Gen of its stream, 0 if the offset does not say it. A worker that has read a part of a
// record has not acknowledged it.
func parsePosition(s string) (gen, n int64, ok bool) {
	if len(s) < 33 || s[16] != '_' || !areDigits(s[:16]) || !areDigits(s[17:33]) {
		return 0, 0, false
	}
	n, err := strconv.ParseInt(s[:16], 10, 64)
	if life := s[33:]; life != "" && err == nil {
		if life[0] != '_' || !areDigits(life[1:]) {
			return 0, 0, false
		}
		gen, err = strconv.ParseInt(life[1:], 10, 64)
	}
	return gen, n, err == nil
}

func areDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
