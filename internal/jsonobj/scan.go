package jsonobj

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// A Scanner reads JSON of a known form from the beginning of B, without
// encoding/json. The first mismatch sets Ok to false; from then on all methods
// read nothing.
type Scanner struct {
	B  []byte // the rest
	Ok bool
}

// Accept skips a literal if it is next, and reports whether it was.
func (s *Scanner) Accept(lit string) bool {
	if !s.Ok || len(s.B) < len(lit) || string(s.B[:len(lit)]) != lit {
		return false
	}
	s.B = s.B[len(lit):]
	return true
}

// Expect skips a literal that must be next.
func (s *Scanner) Expect(lit string) { s.Ok = s.Accept(lit) }

// String reads a string without escapes.
func (s *Scanner) String() []byte {
	if !s.Ok || len(s.B) == 0 || s.B[0] != '"' {
		s.Ok = false
		return nil
	}
	n := bytes.IndexByte(s.B[1:], '"')
	if n < 0 || !plain(s.B[1:1+n]) {
		s.Ok = false
		return nil
	}
	v := s.B[1 : 1+n]
	s.B = s.B[n+2:]
	return v
}

// plain reports whether the text of a JSON string has no escapes and is valid.
func plain(b []byte) bool {
	ascii := true
	for _, c := range b {
		if c < ' ' || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(b)
}

// Time reads an RFC 3339 time in UTC with milliseconds, four times faster than
// package time.
func (s *Scanner) Time() time.Time {
	const layout = "0000-00-00T00:00:00.000Z" // 0 is any digit
	v := s.String()
	if len(v) != len(layout) {
		s.Ok = false
		return time.Time{}
	}
	for i := range len(layout) {
		if v[i] != layout[i] && (layout[i] != '0' || v[i] < '0' || v[i] > '9') {
			s.Ok = false
		}
	}
	year, month, day := number(v[:4]), number(v[5:7]), number(v[8:10])
	hour, minute, second := number(v[11:13]), number(v[14:16]), number(v[17:19])
	t := time.Date(year, time.Month(month), day, hour, minute, second, number(v[20:23])*1e6, time.UTC)
	// Date accepts the 32nd as the 1st of the next month.
	s.Ok = s.Ok && hour < 24 && minute < 60 && second < 60 && t.Day() == day && t.Month() == time.Month(month)
	return t
}

func number(digits []byte) (n int) {
	for _, c := range digits {
		n = n*10 + int(c-'0')
	}
	return n
}

// Int reads a non-negative integer without leading zeros.
func (s *Scanner) Int() int64 {
	var v int64
	n := 0
	for s.Ok && n < len(s.B) && n < 18 && s.B[n] >= '0' && s.B[n] <= '9' {
		v = v*10 + int64(s.B[n]-'0')
		n++
	}
	if n == 0 || n > 1 && s.B[0] == '0' {
		s.Ok = false
		return 0
	}
	s.B = s.B[n:]
	return v
}
