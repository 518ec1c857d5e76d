package tapedeck_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// Sums and products of valid amounts are valid, whatever they are.
func TestAmountStaysValid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	whole := func() int64 { return r.Int64N(1<<53-1) >> r.IntN(53) }
	decimal := func() float64 { return r.Float64() * math.Pow(10, float64(r.IntN(24)-12)) }
	random := func() tapedeck.Amount {
		return tapedeck.Amount{Tokens: whole(), USD: decimal(), Turns: whole(), Seconds: decimal()}
	}
	for range 10_000 {
		a, b := random(), random()
		for _, c := range []tapedeck.Amount{a.Plus(b), a.Plus(tapedeck.Amount{Tokens: math.MaxInt64, USD: math.MaxFloat64})} {
			if err := c.Check("it"); err != nil {
				t.Fatalf("%+v and %+v: %v", a, b, err)
			}
		}
		if s := a.Plus(b); s != b.Plus(a) || s.Tokens < a.Tokens || s.USD < a.USD*(1-1e-12)-1e-9 {
			t.Fatalf("%+v plus %+v is %+v", a, b, s)
		}
	}
}
