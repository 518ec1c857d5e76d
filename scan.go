package tapedeck

import (
	"bytes"
	"time"
	"unicode/utf8"
)

type scanner struct {
	b  []byte
	ok bool
}

func (s *scanner) accept(lit string) bool {
	if !s.ok || len(s.b) < len(lit) || string(s.b[:len(lit)]) != lit {
		return false
	}
	s.b = s.b[len(lit):]
	return true
}

func (s *scanner) expect(lit string) { s.ok = s.accept(lit) }

// string reads a string without escapes.
func (s *scanner) string() []byte {
	if !s.ok || len(s.b) == 0 || s.b[0] != '"' {
		s.ok = false
		return nil
	}
	n := bytes.IndexByte(s.b[1:], '"')
	if n < 0 || !plain(s.b[1:1+n]) {
		s.ok = false
		return nil
	}
	v := s.b[1 : 1+n]
	s.b = s.b[n+2:]
	return v
}

// plain reports whether a string of JSON means what it says.
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

// time reads a time in timeLayout, four times faster than package time.
func (s *scanner) time() time.Time {
	const layout = "0000-00-00T00:00:00.000Z" // 0 is any digit
	v := s.string()
	if len(v) != len(layout) {
		s.ok = false
		return time.Time{}
	}
	for i := range len(layout) {
		if v[i] != layout[i] && (layout[i] != '0' || v[i] < '0' || v[i] > '9') {
			s.ok = false
		}
	}
	year, month, day := number(v[:4]), number(v[5:7]), number(v[8:10])
	hour, minute, second := number(v[11:13]), number(v[14:16]), number(v[17:19])
	t := time.Date(year, time.Month(month), day, hour, minute, second, number(v[20:23])*1e6, time.UTC)
	// Date takes the 32nd for the 1st of the month after.
	s.ok = s.ok && hour < 24 && minute < 60 && second < 60 && t.Day() == day && t.Month() == time.Month(month)
	return t
}

func number(digits []byte) (n int) {
	for _, c := range digits {
		n = n*10 + int(c-'0')
	}
	return n
}

// int reads a canonical, non-negative integer.
func (s *scanner) int() int64 {
	var v int64
	n := 0
	for s.ok && n < len(s.b) && n < 18 && s.b[n] >= '0' && s.b[n] <= '9' {
		v = v*10 + int64(s.b[n]-'0')
		n++
	}
	if n == 0 || n > 1 && s.b[0] == '0' {
		s.ok = false
		return 0
	}
	s.b = s.b[n:]
	return v
}
