package durable

import (
	"math/rand/v2"
	"time"

	"github.com/tapedeck/tapedeck"
)

// An offset is a position in a stream: n records lie before it, and k bytes
// (in a view, k messages) of the record that follows them. On the wire it is
// two numbers of 16 digits, so that offsets sort as text, and n is the offset
// that the rest of Tapedeck speaks of.
type offset struct{ n, k int64 }

const offsetLen = 16 + 1 + 16

func (o offset) String() string {
	b := make([]byte, 0, offsetLen)
	return string(o.append(b))
}

func (o offset) append(b []byte) []byte {
	return appendDigits(append(appendDigits(b, o.n), '_'), o.k)
}

// appendDigits appends 16 digits.
func appendDigits(b []byte, v int64) []byte {
	i := len(b)
	b = append(b, "0000000000000000"...)
	for j := len(b) - 1; j >= i && v > 0; j-- {
		b[j] = byte('0' + v%10)
		v /= 10
	}
	return b
}

// parseOffset reads what String writes, and nothing else.
func parseOffset(s string) (offset, bool) {
	if len(s) != offsetLen || s[16] != '_' {
		return offset{}, false
	}
	n, ok := parseDigits(s[:16])
	k, ok2 := parseDigits(s[17:])
	return offset{n, k}, ok && ok2
}

// parseDigits reads 1 to 16 digits.
func parseDigits(s string) (int64, bool) {
	var v int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		v = v*10 + int64(s[i]-'0')
	}
	return v, s != "" && len(s) <= 16
}

// parseCount reads a number as the protocol writes it: digits without a sign or
// leading zeros.
func parseCount(s string) (int64, bool) {
	if len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	return parseDigits(s)
}

func badOffset(s string) error {
	return tapedeck.Errorf(tapedeck.Invalid, "the offset %.64q is not one of this stream", s).
		WithHint("use -1 for the start, now for the end, or the Stream-Next-Offset of an answer")
}

// Cursors keep caches from answering for ever with the same response: they are
// part of the URL of a live read, and change with time.
const cursorInterval = 20 * time.Second

var cursorEpoch = time.Date(2024, 10, 9, 0, 0, 0, 0, time.UTC)

// cursorAt returns the number of the interval that holds now. A clock that is
// wrong by years still makes a cursor of digits.
func cursorAt(now time.Time) int64 { return max(0, int64(now.Sub(cursorEpoch)/cursorInterval)) }

// nextCursor returns the cursor for a client that sent one: the interval of
// now, but always more than it sent, by a random stretch of up to an hour.
func nextCursor(now time.Time, sent string) int64 {
	cur := cursorAt(now)
	if v, ok := parseDigits(sent); ok && v >= cur {
		return v + 1 + rand.Int64N(int64(time.Hour/cursorInterval))
	}
	return cur
}
