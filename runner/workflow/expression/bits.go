package expression

import "math/bits"

// bitwise returns a function of two whole numbers of 64 bits. Those of expr-lang take fractions,
// and lose what is beyond 64 bits.
func bitwise(f func(x, y int) (any, error)) function {
	return cheap(func(a []any) (any, error) {
		if len(a) != 2 {
			return wrong("it takes two whole numbers, not %d values", len(a))
		}
		x, err := bitsOf(a[0])
		if err != nil {
			return nil, err
		}
		y, err := bitsOf(a[1])
		if err != nil {
			return nil, err
		}
		return f(x, y)
	})
}

// bitsOf returns a number whose bits can be used.
func bitsOf(v any) (int, error) {
	n, ok := v.(int)
	if !ok {
		_, err := wrong("it takes whole numbers of 64 bits, not %s", describe(v))
		return 0, err
	}
	return n, nil
}

func bitNot(a []any) (any, error) {
	if len(a) != 1 {
		return wrong("it takes one whole number, not %d values", len(a))
	}
	n, err := bitsOf(a[0])
	return ^n, err
}

// shift returns a function that shifts x by y bits.
func shift(f func(x int, y uint) (any, error)) function {
	return bitwise(func(x, y int) (any, error) {
		if y < 0 {
			return wrong("it shifts by a number of bits from 0, not %d", y)
		}
		return f(x, uint(y))
	})
}

func shiftLeft(x int, y uint) (any, error) {
	if out := x << y; out>>y == x && (y < bits.UintSize || x == 0) {
		return out, nil
	}
	return wrong("%d shifted by %d bits does not fit in 64 bits", x, y)
}
