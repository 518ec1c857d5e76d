// Package decimal has the numbers of workflows and forms: decimals of at most 34 digits, as
// FEEL and IEEE 754's decimal128 have them. A float64 changes 0.1, and whole numbers above
// 2^53. Package calc computes with them; this one links only the standard library.
package decimal

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// These are the bounds of decimal128. An exponent is that of the first digit, so every
// number is below 1e6145.
const (
	Digits      = 34
	MaxExponent = 6144
	MinExponent = -6143
)

// Bounds says in a sentence which numbers there are.
const Bounds = "a number to compute with has at most 34 digits, and an exponent from -6143 to 6144"

// These are the errors of this package.
var (
	ErrSyntax = errors.New("it is not a number")
	ErrBounds = errors.New("it is beyond the bounds: " + Bounds)
)

// A Decimal is a number. Its zero value is 0. Two of them are the same number exactly if
// they are equal with ==: the last digit is never 0, and 0 has no sign. So they can be keys
// of maps, and parts of values that reflect compares.
type Decimal struct {
	hi, lo uint64 // the digits as a whole number, below 10^34
	exp    int32  // of the last digit
	neg    bool
}

// Parse reads a number such as 12, -0.5 or 1.5e-7. The error is ErrSyntax, or ErrBounds: a
// number is never rounded. The time depends on the length of the text only, not on the
// exponent.
func Parse(text string) (Decimal, error) {
	w, ok := read(strings.TrimPrefix(text, "+"))
	switch first := w.before - 1; {
	case !ok || strings.HasPrefix(text, "+-"):
		return Decimal{}, ErrSyntax
	case w.count == 0:
		return Decimal{}, nil
	case w.count > Digits || first > MaxExponent || first < MinExponent:
		return Decimal{}, ErrBounds
	}
	d := Decimal{exp: int32(w.before - int64(w.count)), neg: w.neg} //nolint:gosec // it is within the bounds
	for i := range len(w.digits) {
		if w.digits[i] != '.' {
			d.push(w.digits[i] - '0')
		}
	}
	return d, nil
}

// A written is a number as a text has it: 0.DIGITS * 10^before.
type written struct {
	neg    bool
	digits string // from the first to the last that is not 0, maybe with a point between them; "" for 0
	count  int    // of the digits
	before int64
}

// read reads a number. It reports false if the text is none.
func read(text string) (w written, ok bool) {
	text, w.neg = strings.CutPrefix(text, "-")
	point, end := -1, 0
	for ; end < len(text) && (isDigit(text[end]) || text[end] == '.' && point < 0); end++ {
		if text[end] == '.' {
			point = end
		}
	}
	exp, ok := exponent(text[end:])
	if !ok || end == 0 || end == 1 && point == 0 {
		return written{}, false
	}
	if point < 0 {
		point = end
	}
	first, last := 0, end
	for first < end && !counts(text[first]) {
		first++
	}
	for last > first && !counts(text[last-1]) {
		last--
	}
	w.digits, w.count, w.before = text[first:last], last-first, exp+int64(point-first)
	if first > point {
		w.before++
	} else if last > point {
		w.count--
	}
	return w, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// counts reports whether a byte of a number is a digit that counts at its beginning or its end.
func counts(c byte) bool { return '1' <= c && c <= '9' }

// push appends a digit. There is room for it.
func (d *Decimal) push(digit byte) {
	carry, lo := bits.Mul64(d.lo, 10)
	lo, c := bits.Add64(lo, uint64(digit), 0)
	d.hi, d.lo = d.hi*10+carry+c, lo
}

// Plain returns a number of JSON without an exponent, and without zeros that do not count: every
// way to write a number becomes the same text. It knows no bounds of decimals. It returns false
// if the text is no number, or would be longer than most.
func Plain(text string, most int) (string, bool) {
	w, ok := read(text)
	if ok && w.count == 0 {
		return "0", true
	}
	limit := int64(most)
	if !ok || w.count > most || w.before > limit || -w.before > limit {
		return "", false
	}
	out := strings.Replace(w.digits, ".", "", 1)
	switch n := int(w.before); {
	case n <= 0:
		out = "0." + strings.Repeat("0", -n) + out
	case n >= w.count:
		out += strings.Repeat("0", n-w.count)
	default:
		out = out[:n] + "." + out[n:]
	}
	if w.neg {
		out = "-" + out
	}
	if len(out) > most {
		return "", false
	}
	return out, true
}

// exponent reads "" or a text such as e-7. A number of more digits is as large as any that
// is beyond the bounds, also together with the digits of a text in memory.
func exponent(s string) (n int64, ok bool) {
	if s == "" {
		return 0, true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	neg := false
	if s = s[1:]; s != "" && (s[0] == '-' || s[0] == '+') {
		neg, s = s[0] == '-', s[1:]
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), 1<<50)
	}
	if neg {
		n = -n
	}
	return n, s != ""
}

// FromInt returns a whole number.
func FromInt(n int) Decimal {
	lo := uint64(n) //nolint:gosec // of a negative number, its magnitude follows
	if n < 0 {
		lo = -lo
	}
	return Make(0, lo, 0, n < 0)
}

// Make returns the number of digits, which are hi * 2^64 + lo, at an exponent. The digits
// are below 10^34, and the number is within the bounds.
func Make(hi, lo uint64, exp int32, neg bool) Decimal {
	return Decimal{hi: hi, lo: lo, exp: exp, neg: neg}.reduced()
}

// Parts returns what [Make] takes.
func (d Decimal) Parts() (hi, lo uint64, exp int32, neg bool) { return d.hi, d.lo, d.exp, d.neg }

// reduced returns d without zeros at its end.
func (d Decimal) reduced() Decimal {
	if d.hi == 0 && d.lo == 0 {
		return Decimal{}
	}
	for {
		q, r := d.hi/10, d.hi%10
		lo, rest := bits.Div64(r, d.lo, 10)
		if rest != 0 {
			return d
		}
		d.hi, d.lo, d.exp = q, lo, d.exp+1
	}
}

// FromFloat returns the shortest decimal that is read as f: of 0.1, it is 0.1.
func FromFloat(f float64) (Decimal, error) {
	return Parse(strconv.FormatFloat(f, 'g', -1, 64))
}

// Int returns d as an int, false if it is none.
func (d Decimal) Int() (int, bool) {
	n := d.lo
	if d.hi != 0 || d.exp < 0 || d.exp > 19 {
		return 0, false
	}
	for range d.exp {
		carry, lo := bits.Mul64(n, 10)
		if carry != 0 {
			return 0, false
		}
		n = lo
	}
	switch {
	case d.neg && n <= math.MaxInt+1:
		return int(-n), true //nolint:gosec // it wraps around to the negative number
	case !d.neg && n <= math.MaxInt:
		return int(n), true
	}
	return 0, false
}

// Whole reports whether d has no digits behind the point.
func (d Decimal) Whole() bool { return d.exp >= 0 }

// Integer reports whether d is a whole number of at most [Digits] digits. 1e34 has one more.
func (d Decimal) Integer() bool { return d.Whole() && len(d.digits(nil))+int(d.exp) <= Digits }

// digits appends the digits, without a point.
func (d Decimal) digits(b []byte) []byte {
	const group = 1e19 // the largest power of ten in a uint64; hi is below it
	if d.hi == 0 {
		return strconv.AppendUint(b, d.lo, 10)
	}
	q, r := bits.Div64(d.hi, d.lo, group)
	b = strconv.AppendUint(b, q, 10)
	n := len(b)
	b = append(b, "0000000000000000000"...)
	for i := len(b) - 1; i >= n; i, r = i-1, r/10 {
		b[i] += byte(r % 10)
	}
	return b
}

// String returns the number as JSON has it: without an exponent if its first digit is from
// 1e-6 to 1e33, as encoding/json does for smaller numbers.
func (d Decimal) String() string { return d.format(-6) }

// Text returns the number for people: also small ones have no exponent, as far as that is
// legible.
func (d Decimal) Text() string { return d.format(MinPlain) }

// MinPlain is the exponent of the smallest number that Text writes without an exponent.
const MinPlain = -34

func (d Decimal) format(least int) string {
	var buffer [64]byte
	digits := d.digits(buffer[:0])
	first := len(digits) - 1 + int(d.exp)
	var b strings.Builder
	if d.neg {
		b.WriteByte('-')
	}
	switch {
	case first < least || first >= Digits:
		b.WriteByte(digits[0])
		if len(digits) > 1 {
			b.WriteByte('.')
			b.Write(digits[1:])
		}
		b.WriteByte('e')
		if first >= 0 {
			b.WriteByte('+')
		}
		b.WriteString(strconv.Itoa(first))
	case d.exp >= 0:
		b.Write(digits)
		b.WriteString(strings.Repeat("0", int(d.exp)))
	case first < 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -first-1))
		b.Write(digits)
	default:
		b.Write(digits[:first+1])
		b.WriteByte('.')
		b.Write(digits[first+1:])
	}
	return b.String()
}

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int {
	switch {
	case d.hi == 0 && d.lo == 0:
		return 0
	case d.neg:
		return -1
	}
	return 1
}

// Cmp returns -1 if d is below e, 0 if they are the same number, and 1 otherwise. It makes
// no large numbers, whatever the exponents are.
func (d Decimal) Cmp(e Decimal) int {
	s, t := d.Sign(), e.Sign()
	switch {
	case d == e:
		return 0
	case s < t:
		return -1
	case s > t:
		return 1
	}
	var a, b [40]byte
	x, y := d.digits(a[:0]), e.digits(b[:0])
	order := len(x) + int(d.exp) - len(y) - int(e.exp)
	if order == 0 {
		order = strings.Compare(string(x), string(y)) // none has zeros at its end
	}
	if order < 0 {
		return -s
	}
	return s
}

// Neg returns -d.
func (d Decimal) Neg() Decimal {
	d.neg = !d.neg && d.Sign() != 0
	return d
}

// Abs returns d without its sign.
func (d Decimal) Abs() Decimal {
	d.neg = false
	return d
}
