package decimal_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/decimal"
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

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "0e999999999999999999999": "0", "00": "0", "3": "3", "3.0": "3", "3e0": "3", "300e-2": "3", "0.03e2": "3", "+3": "3", "12.50": "12.5", "-0.1": "-0.1", ".5": "0.5", "5.": "5", "007": "7",
		"9007199254740993": "9007199254740993", "12345678901234567890": "12345678901234567890", "-9223372036854775809": "-9223372036854775809", nines: nines, "1" + strings.Repeat("0", 33): "1" + strings.Repeat("0", 33),
		"1" + strings.Repeat("0", 34): "1e+34", "1e6144": "1e+6144", nines + "e6111": "9.999999999999999999999999999999999e+6144", "1e-6143": "1e-6143", "0.000001": "0.000001", "0.0000001": "1e-7", "0.00000012": "1.2e-7", "1.5E+3": "1500", "100.001": "100.001", "1" + strings.Repeat("0", 1_000_000) + "e-1000000": "1", "0." + strings.Repeat("0", 1_000_000) + "25e1000000": "0.25",
		"18446744073709551616": "18446744073709551616", "10000000000000000000.01": "10000000000000000000.01",
	} {
		if got := parse(t, text).String(); got != want {
			t.Errorf("%.60s is %s, want %s", text, got, want)
		}
		if got := parse(t, parse(t, text).Text()); got != parse(t, text) {
			t.Errorf("%.60s is %v after its text", text, got)
		}
	}
	if got := parse(t, "0.00000012").Text(); got != "0.00000012" {
		t.Error(got)
	}
	for _, text := range []string{"", "-", ".", "e5", "1e", "1e+", "1x", "1.2.3", "0x1", "NaN", "Inf", "1_000", " 1", "1e5x", "--1"} {
		if _, err := decimal.Parse(text); !errors.Is(err, decimal.ErrSyntax) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{nines + "9", "0.1" + nines, "1e6145", "1e-6144", "1e1000000000", "-1e-99999999999999999999", strings.Repeat("7", 1_000_000), "1." + strings.Repeat("0", 1_000_000) + "1"} {
		if _, err := decimal.Parse(text); !errors.Is(err, decimal.ErrBounds) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

func TestInt(t *testing.T) {
	for text, want := range map[string]bool{"9223372036854775807": true, "-9223372036854775808": true, "9223372036854775808": false, "-9223372036854775809": false, "0.5": false, "1e18": true, "1e19": false, "9007199254740993.0": true, "1e6000": false} {
		n, ok := parse(t, text).Int()
		if ok != want || ok && decimal.FromInt(n) != parse(t, text) {
			t.Errorf("%s is %d, %v", text, n, ok)
		}
	}
}

// TestOrder compares with rational numbers.
func TestOrder(t *testing.T) {
	list := []string{"0", "1", "-1", "0.1", "0.10001", "-0.1", "10", "12", "123", "1.2e1", "9007199254740992", "9007199254740993", "9007199254740993.1", "1e6144", "-1e6144", "1e-6143", nines, "1e34", "-" + nines, "18446744073709551616", "18446744073709551615"}
	for _, a := range list {
		for _, b := range list {
			x, _ := new(big.Rat).SetString(a)
			y, _ := new(big.Rat).SetString(b)
			if got, want := parse(t, a).Cmp(parse(t, b)), x.Cmp(y); got != want || (got == 0) != (parse(t, a) == parse(t, b)) {
				t.Errorf("%s and %s: %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestPlain(t *testing.T) {
	zeros := strings.Repeat("0", 34)
	for text, want := range map[string]string{
		"0": "0", "-0.0": "0", "0e9999": "0", "7": "7", "-7.50": "-7.5", "1e34": "1" + zeros, "1e+34": "1" + zeros, "10E33": "1" + zeros, "1" + zeros: "1" + zeros, "0.1e35": "1" + zeros, "1.25e1": "12.5", "1e-7": "0.0000001",
		"12345678901234567890123456789012345678901.50": "12345678901234567890123456789012345678901.5", "-0.05": "-0.05", "100.25e-2": "1.0025", "1e100": "", "1e-100": "", "1e999999999999999999": "", "1e-999999999999999999": "", strings.Repeat("1", 101): "",
		"": "", "-": "", ".": "", "e5": "", "1e": "", "1x": "", "--1": "", "NaN": "", "1.2.3": "",
	} {
		if got, ok := decimal.Plain(text, 100); got != want || ok != (want != "") {
			t.Errorf("%.60s is %s, %t, want %s", text, got, ok, want)
		}
	}
}
