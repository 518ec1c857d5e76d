package durable

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
)

// An offset is a position in a stream: after n records and k bytes (in a view, k
// messages) of the next record. On the wire it is two numbers of 16 digits, so that
// offsets sort as text. n is the offset of the log.
type offset struct{ n, k int64 }

const offsetLen = 16 + 1 + 16

// of returns o as a client gets it: with the incarnation of its stream behind it, so that a
// client that comes back with it to a stream that was recreated is told. A gen of 0 is not
// known.
func (o offset) of(gen int64) string {
	return string(o.appendOf(make([]byte, 0, offsetLen+20), gen))
}

func (o offset) appendOf(b []byte, gen int64) []byte {
	if b = o.append(b); gen == 0 {
		return b
	}
	return strconv.AppendInt(append(b, '_'), gen, 10)
}

// String returns o without an incarnation.
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

// A place is an offset that a client has sent, with the incarnation of the stream that it
// is of; gen is 0 if the client does not say it.
type place struct {
	offset
	gen int64
}

// parsePlace reads the forms that [offset.of] writes, and no other. An offset without an
// incarnation is of whatever the stream is now: the protocol's suite sends such offsets, and
// people type them.
func parsePlace(s string) (p place, ok bool) {
	if len(s) < offsetLen || s[16] != '_' {
		return p, false
	}
	if gen := s[offsetLen:]; gen != "" {
		if p.gen, ok = parseCount(gen[1:]); !ok || gen[0] != '_' || p.gen == 0 {
			return p, false
		}
	}
	n, ok := parseDigits(s[:16])
	k, ok2 := parseDigits(s[17:offsetLen])
	p.offset = offset{n, k}
	return p, ok && ok2
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

// parseCount reads a number of the protocol: digits without a sign or leading zeros.
func parseCount(s string) (int64, bool) {
	if len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	return parseDigits(s)
}

// badOffset returns the error of an offset that the stream does not have.
func badOffset(s string) error {
	return tapedeck.Errorf(tapedeck.Invalid, "the offset %.64q is not one of this stream", s).
		WithHint("use -1 for the start, now for the end, or the Stream-Next-Offset of an answer")
}

// cursorInterval is how often cursors change. A cursor is part of the URL of a live read,
// so that caches do not answer with the same response for ever.
const cursorInterval = 20 * time.Second

var cursorEpoch = time.Date(2024, 10, 9, 0, 0, 0, 0, time.UTC)

// cursorAt returns the number of the interval of now. It is never negative, even if the
// clock is wrong by years.
func cursorAt(now time.Time) int64 { return max(0, int64(now.Sub(cursorEpoch)/cursorInterval)) }

// nextCursor returns the cursor for a client that sent one: the interval of now, or if
// that is not larger, the sent one plus a random time of up to an hour.
func nextCursor(now time.Time, sent string) int64 {
	cur := cursorAt(now)
	if v, ok := parseDigits(sent); ok && v >= cur {
		return v + 1 + rand.Int64N(int64(time.Hour/cursorInterval))
	}
	return cur
}
