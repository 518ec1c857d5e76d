package calc_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/decimal"
	"github.com/tapedeck/tapedeck/internal/decimal/calc"
)

func parse(t *testing.T, text string) decimal.Decimal {
	t.Helper()
	d, err := decimal.Parse(text)
	if err != nil {
		t.Fatalf("%.60s: %v", text, err)
	}
	return d
}

const nines = "9999999999999999999999999999999999" // 34

func TestCompute(t *testing.T) {
	for _, c := range []struct{ op, x, y, want string }{
		{"+", "0.1", "0.2", "0.3"}, {"+", "9007199254740992", "1", "9007199254740993"}, {"+", "1e30", "1", "1000000000000000000000000000001"}, {"+", "0.5", "-0.5", "0"}, {"+", "1e6144", "1e-6000", "1e+6144"}, {"-", "1e-6143", "1e6144", "-1e+6144"}, {"+", "0", "1e-6143", "1e-6143"}, {"-", "1e6144", "0", "1e+6144"}, {"%", "1e-6143", "1e6144", "1e-6143"}, {"%", "1e6144", "7e-6143", ""}, {"-", "1", "1e-36", "1"}, {"-", "1", "1e-34", "0.9999999999999999999999999999999999"}, {"+", "1e90", "1e89", "1.1e+90"}, {"+", "9e6144", "9e6144", ""},
		{"-", "0.3", "0.1", "0.2"}, {"-", "5", "5", "0"}, {"*", "0.1", "0.1", "0.01"}, {"*", "9007199254740993", "9007199254740993", "81129638414606699710187514626049"}, {"*", "1e6000", "1e6000", ""}, {"*", "1e-6000", "1e-6000", ""},
		{"/", "1", "3", "0." + strings.Repeat("3", 34)}, {"/", "2", "3", "0." + strings.Repeat("6", 33) + "7"}, {"/", "6", "3", "2"}, {"/", "1", "0", ""}, {"/", "0", "0", ""}, {"%", "5.5", "2", "1.5"}, {"%", "-5.5", "2", "-1.5"}, {"%", "1", "0", ""}, {"%", "1e100", "3", ""},
		{"**", "2", "0.5", "1.414213562373095048801688724209698"}, {"**", "4", "0.5", "2"}, {"**", "2", "100", "1267650600228229401496703205376"}, {"**", "2", "-1", "0.5"}, {"**", "1.1", "2", "1.21"}, {"**", "0", "-1", ""}, {"**", "0", "0", "1"}, {"**", "0", "5", "0"}, {"**", "-8", "0.5", ""}, {"**", "-2", "3", "-8"},
		{"**", "2", "1000000000", ""}, {"**", "0.5", "1000000000", ""}, {"**", "1", "1e6000", "1"}, {"**", "3", "1e6000", ""}, {"**", "1e6000", "1e9", ""}, {"**", "9.999", "999999999.5", ""},
	} {
		x, y := parse(t, c.x), parse(t, c.y)
		f := map[string]func(d, e decimal.Decimal) (decimal.Decimal, error){"+": calc.Add, "-": calc.Sub, "*": calc.Mul, "/": calc.Div, "%": calc.Rem, "**": calc.Pow}[c.op]
		got, err := f(x, y)
		if (err != nil) != (c.want == "") || err == nil && got != parse(t, c.want) {
			t.Errorf("%s %s %s is %s, %v, want %s", c.x, c.op, c.y, got, err, c.want)
		}
	}
	for text, want := range map[string][4]string{"2.5": {"3", "3", "2", "2"}, "-2.5": {"-3", "-2", "-3", "-2"}, "0.4": {"0", "1", "0", "0"}, "7": {"7", "7", "7", "7"}, "9007199254740993.5": {"9007199254740994", "9007199254740994", "9007199254740993", "9007199254740993"}, "-0.1": {"0", "0", "-1", "0"}, "1e-6143": {"0", "1", "0", "0"}} {
		d := parse(t, text)
		if got := [4]string{calc.Round(d).String(), calc.Ceil(d).String(), calc.Floor(d).String(), calc.Trunc(d).String()}; got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func FuzzCalc(f *testing.F) {
	for _, s := range []string{"1", "-0.50", "1e400", "9007199254740993", "1e1000000000", "00.0e-0", nines} {
		f.Add(s, "3")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := decimal.Parse(a)
		if err != nil {
			return
		}
		if y, err := decimal.Parse(x.String()); err != nil || y != x {
			t.Fatalf("%q is %s, then %s, %v", a, x, y, err)
		}
		y, err := decimal.Parse(b)
		if err != nil {
			return
		}
		if sum, err := calc.Add(x, y); err == nil && len(a) < 15 && len(b) < 15 && !strings.ContainsAny(a+b, "eE") {
			p, _ := new(big.Rat).SetString(a)
			q, _ := new(big.Rat).SetString(b)
			if s, ok := new(big.Rat).SetString(sum.String()); p != nil && q != nil && (!ok || s.Cmp(p.Add(p, q)) != 0) {
				t.Errorf("%s + %s is %s", a, b, sum)
			}
		}
		for _, f := range []func(d, e decimal.Decimal) (decimal.Decimal, error){calc.Sub, calc.Mul, calc.Div, calc.Rem, calc.Pow} {
			if r, err := f(x, y); err == nil {
				if back, err := decimal.Parse(r.String()); err != nil || back != r {
					t.Errorf("%s and %s: %s, %v", a, b, r, err)
				}
			}
		}
	})
}

func BenchmarkCalc(b *testing.B) {
	x, _ := decimal.Parse("12.34")
	y, _ := decimal.Parse("0.5")
	big, _ := decimal.Parse("123456789012345678901234.5678")
	long, _ := decimal.Parse("1234567.890123456789012345678901234")
	most, _ := decimal.Parse("999.0000000000000000000000000000001")
	near, _ := decimal.Parse("1.000000000000000000000000000000001")
	for name, f := range map[string]func(){
		"add": func() { _, _ = calc.Add(x, y) }, "mul": func() { _, _ = calc.Mul(x, y) }, "div": func() { _, _ = calc.Div(x, y) }, "add large": func() { _, _ = calc.Add(big, y) },
		"root": func() { _, _ = calc.Pow(x, y) }, "power": func() { _, _ = calc.Pow(x, decimal.FromInt(5)) }, "long": func() { _, _ = calc.Pow(near, long) }, "most": func() { _, _ = calc.Pow(near, decimal.FromInt(999_999_999)) }, "log": func() { _, _ = calc.Pow(long, most) }, "parse": func() { _, _ = decimal.Parse("12.34") }, "text": func() { _ = x.String() }, "compare": func() { _ = x.Cmp(y) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
		})
	}
}
