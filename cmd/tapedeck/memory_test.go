package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck/tapedeck/internal/intake"
)

func TestGroupLimit(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("memory.max", "max\n")
	write("a/memory.max", "1000000\n")
	write("a/b/memory.max", "2000000\n")
	write("memory/old/memory.limit_in_bytes", "3000000\n")
	write("memory/memory.limit_in_bytes", "9223372036854771712\n")
	for self, want := range map[string]int64{
		"0::/\n": 0, "0::/a\n": 1000000, "0::/a/b\n": 1000000, "0::/elsewhere\n": 0,
		"5:cpu:/a\n4:memory:/old\n": 3000000, "4:memory:/\n": 0, "nonsense": 0, "": 0, "0::/../../a": 1000000,
	} {
		write("self", self)
		if got := groupLimit(root, filepath.Join(root, "self")); got != want {
			t.Errorf("%q: %d, want %d", self, got, want)
		}
	}
	if got := groupLimit(root, filepath.Join(root, "none")); got != 0 {
		t.Errorf("without control groups: %d", got)
	}
}

// TestBodyBudget: one body of the largest size fits into the budget.
func TestBodyBudget(t *testing.T) {
	for _, c := range []struct{ limit, maxBody, budget, largest int64 }{
		{0, 64 << 20, intake.DefaultBudget, 64 << 20},
		{0, 600 << 20, 800<<20 + 1, 600 << 20},
		{4 << 30, 64 << 20, intake.DefaultBudget, 64 << 20},
		{384 << 20, 64 << 20, 64 << 20, 48 << 20},
	} {
		if budget, largest := bodyBudget(c.limit, c.maxBody, slog.New(slog.DiscardHandler)); budget != c.budget || largest != c.largest {
			t.Errorf("%+v: got a budget of %d and bodies of %d", c, budget, largest)
		}
	}
}

func TestConnectionLimit(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 65536, 20: 16, 100: 36, 256: 192, 1024: 768, 1 << 20: 65536, 1 << 63: 65536, 80_000: 60_000} {
		if got := connectionLimit(descriptors); got != want {
			t.Errorf("%d descriptors: %d connections, want %d", descriptors, got, want)
		}
	}
}
