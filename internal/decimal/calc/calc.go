// Package calc computes with decimals. A result is rounded to 34 digits, half to even, as
// FEEL says; what is no number within the bounds is an error, and costs nothing.
package calc

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"github.com/tapedeck/tapedeck/internal/decimal"
)

// These are the errors of this package.
var (
	ErrRange = errors.New("the result is too large or too small: " + decimal.Bounds)
	ErrZero  = errors.New("the result is no number: it divides by zero")
	ErrRoot  = errors.New("the result is no number: it is a root of a negative number")
	ErrPower = errors.New("an exponent is at most " + strconv.Itoa(maxPower))
)

var context = &apd.Context{
	Precision: decimal.Digits, MaxExponent: decimal.MaxExponent, MinExponent: decimal.MinExponent,
	Traps: apd.DefaultTraps, Rounding: apd.RoundHalfEven,
}

func set(to *apd.Decimal, d decimal.Decimal) *apd.Decimal {
	hi, lo, exp, neg := d.Parts()
	to.Form, to.Negative, to.Exponent = apd.Finite, neg, exp
	if hi == 0 {
		to.Coeff.SetUint64(lo)
		return to
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	to.Coeff.SetBytes(b[:])
	return to
}

// from returns a result, which has no more digits than there is room for.
func from(r *apd.Decimal) decimal.Decimal {
	if r.Coeff.IsUint64() {
		return decimal.Make(0, r.Coeff.Uint64(), r.Exponent, r.Negative)
	}
	var b [16]byte
	r.Coeff.FillBytes(b[:])
	return decimal.Make(binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), r.Exponent, r.Negative)
}

func compute(d, e decimal.Decimal, f func(r, x, y *apd.Decimal) (apd.Condition, error)) (decimal.Decimal, error) {
	var r, x, y apd.Decimal
	c, err := f(&r, set(&x, d), set(&y, e))
	switch {
	case err == nil:
		return from(&r), nil
	case c.InvalidOperation():
		return decimal.Decimal{}, ErrRoot
	}
	return decimal.Decimal{}, ErrRange
}

// small returns the digits of two numbers at the same exponent, if they are short: the
// amounts of everyday, which are added without large numbers.
func small(d, e decimal.Decimal) (x, y int64, exp int32, ok bool) {
	const most = 1 << 53
	dHi, dLo, dExp, dNeg := d.Parts()
	eHi, eLo, eExp, eNeg := e.Parts()
	if dHi != 0 || eHi != 0 || dLo > most || eLo > most {
		return 0, 0, 0, false
	}
	x, y, exp = int64(dLo), int64(eLo), min(dExp, eExp) //nolint:gosec // they are at most most
	for range dExp - exp {
		if x *= 10; x > most || x == 0 {
			return 0, 0, 0, false
		}
	}
	for range eExp - exp {
		if y *= 10; y > most || y == 0 {
			return 0, 0, 0, false
		}
	}
	if dNeg {
		x = -x
	}
	if eNeg {
		y = -y
	}
	return x, y, exp, exp > -100 && exp < 100 // far from the bounds
}

// Add returns d + e.
func Add(d, e decimal.Decimal) (decimal.Decimal, error) {
	if x, y, exp, ok := small(d, e); ok {
		sum, neg := x+y, x+y < 0
		if neg {
			sum = -sum
		}
		return decimal.Make(0, uint64(sum), exp, neg), nil //nolint:gosec // it is not negative
	}
	if large, ok := absorbs(d, e); ok {
		return large, nil
	}
	return compute(d, e, context.Add)
}

// absorbs returns one of two numbers if it is their sum, because the other one is lost when the
// sum is rounded.
func absorbs(d, e decimal.Decimal) (sum decimal.Decimal, ok bool) {
	switch n := distance(d, e); {
	case d.Sign() == 0, e.Sign() != 0 && n < -apart:
		return e, true
	case e.Sign() == 0, n > apart:
		return d, true
	}
	return decimal.Decimal{}, false
}

// apart is a distance at which the number with the smaller exponent is below a tenth of half of
// the last of 34 digits of the other one. To write both at one exponent would take thousands of
// digits.
const apart = 2*decimal.Digits + 2

// distance returns the exponent of the last digit of d less that of e.
func distance(d, e decimal.Decimal) int32 {
	_, _, dExp, _ := d.Parts()
	_, _, eExp, _ := e.Parts()
	return dExp - eExp
}

// Sub returns d - e.
func Sub(d, e decimal.Decimal) (decimal.Decimal, error) { return Add(d, e.Neg()) }

// Mul returns d * e.
func Mul(d, e decimal.Decimal) (decimal.Decimal, error) { return compute(d, e, context.Mul) }

// Div returns d / e.
func Div(d, e decimal.Decimal) (decimal.Decimal, error) {
	if e.Sign() == 0 {
		return decimal.Decimal{}, ErrZero
	}
	return compute(d, e, context.Quo)
}

// Rem returns what is left of d when e is taken from it as often as possible. It has the
// sign of d.
func Rem(d, e decimal.Decimal) (decimal.Decimal, error) {
	if e.Sign() == 0 {
		return decimal.Decimal{}, ErrZero
	}
	switch n := distance(d, e); {
	case d.Sign() == 0, n < -apart:
		return d, nil
	case n > apart:
		return decimal.Decimal{}, ErrRange // it is taken from d more often than 34 digits can say
	}
	return compute(d, e, context.Rem)
}

// maxPower is the largest exponent of a power: with more, the digits that are rounded away
// at each step would be seen in the result.
const maxPower = 1_000_000_000

var (
	zero  = decimal.Decimal{}
	one   = decimal.FromInt(1)
	half  = decimal.Make(0, 5, -1, false)
	tenth = decimal.Make(0, 1, -1, false)
)

// Pow returns d ** e.
func Pow(d, e decimal.Decimal) (decimal.Decimal, error) {
	switch {
	case e == zero, d == one: // also 0 ** 0, as it is for floats
		return one, nil
	case d == zero && e.Sign() < 0:
		return zero, ErrZero
	case d == zero:
		return zero, nil
	case e.Abs().Cmp(decimal.FromInt(maxPower)) > 0:
		return zero, ErrPower
	case e == half: // so that the root of 4 is 2
		return compute(d, e, func(r, x, _ *apd.Decimal) (apd.Condition, error) { return context.Sqrt(r, x) })
	}
	return compute(d, e, context.Pow)
}

// Round returns the nearest whole number, of two the one farther from 0.
func Round(d decimal.Decimal) decimal.Decimal { return integral(d, apd.RoundHalfUp) }

// Ceil returns the smallest whole number that is not below d.
func Ceil(d decimal.Decimal) decimal.Decimal { return integral(d, apd.RoundCeiling) }

// Floor returns the largest whole number that is not above d.
func Floor(d decimal.Decimal) decimal.Decimal { return integral(d, apd.RoundFloor) }

// Trunc returns d without the digits behind the point.
func Trunc(d decimal.Decimal) decimal.Decimal { return integral(d, apd.RoundDown) }

func integral(d decimal.Decimal, by apd.Rounder) decimal.Decimal {
	if d.Whole() {
		return d
	}
	if d.Abs().Cmp(tenth) < 0 { // with the smallest numbers, apd says that it is impossible
		_, _, _, neg := d.Parts()
		d = decimal.Make(0, 1, -1, neg)
	}
	c := *context
	c.Rounding = by
	var r, x apd.Decimal
	if _, err := c.RoundToIntegralValue(&r, set(&x, d)); err != nil {
		return d // a number with digits behind its point is below 1e34, so its whole part fits
	}
	return from(&r)
}
