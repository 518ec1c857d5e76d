package bytesize

import "testing"

func TestBytes(t *testing.T) {
	for in, want := range map[string]int64{"1": 1, "64MiB": 64 << 20, "4 GiB": 4 << 30, "2KB": 2000, "7B": 7} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("%q is %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "-1", "GiB", "1 TiB", "2000GiB", "1.5GiB"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("%q is %d", in, got)
		}
	}
	for n, want := range map[int64]string{4 << 30: "4 GiB", 1536 << 10: "1536 KiB", 1000: "1000 B"} {
		if got := Text(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}
