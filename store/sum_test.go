package store_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// TestSumsStay: the sums in existing databases must be those that this program computes.
func TestSumsStay(t *testing.T) {
	r := tapedeck.Record{Offset: 7, Data: []byte(`{"offset":7,"type":"x"}`)}
	sum := store.SumOf(3, r, 0x12345678)
	if want := store.Sum(5873594858450498813); sum != want {
		t.Errorf("it is %d", sum)
	}
	if want := store.Sum(-3349777180324676621); sum.SumErased(3, r) != want {
		t.Errorf("erased it is %d", sum.SumErased(3, r))
	}
}

// TestSum changes one thing at a time.
func TestSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		gen, before := random.Int64(), store.Link(random.Uint32()>>1)
		data := make([]byte, 1+random.IntN(200))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		r := tapedeck.Record{Offset: random.Int64(), Data: data}
		sum := store.SumOf(gen, r, before)
		erased := sum.SumErased(gen, r)
		for _, s := range []store.Sum{sum, erased} {
			if !s.Covers(gen, r) || !s.Follows(gen, r, before) || s.Link() != sum.Link() {
				t.Fatalf("%x does not cover what it was computed from", s)
			}
			if s.Covers(gen+1, r) || s.Covers(gen, tapedeck.Record{Offset: r.Offset + 1, Data: data}) || (s^1<<random.IntN(64)).Covers(gen, r) {
				t.Fatalf("%x covers another record", s)
			}
		}
		if sum.Erased() || !erased.Erased() {
			t.Fatal("an erased record does not say so, or another one does")
		}
		if sum.Follows(gen, r, before^1<<random.IntN(31)) || !erased.Follows(gen, r, before^1) {
			t.Fatal("the chain is wrong")
		}
		// Up to 32 bits in a row are always found.
		at := random.IntN(len(data))
		data[at] ^= byte(1 + random.IntN(255))
		if sum.Covers(gen, r) {
			t.Fatalf("%x covers other bytes", sum)
		}
	}
	data := []byte("abc")
	if n := testing.AllocsPerRun(100, func() { store.SumOf(1, tapedeck.Record{Data: data}, 1) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

func TestChain(t *testing.T) {
	record := func(offset int64) tapedeck.Record { return tapedeck.Record{Offset: offset, Data: []byte{byte(offset)}} }
	var sums []store.Sum
	link := store.Link(0)
	for i := range int64(4) {
		sums = append(sums, store.SumOf(1, record(i), link))
		link = sums[i].Link()
	}
	c := store.Chain{Gen: 1}
	for i := range int64(4) {
		if p := c.Next(record(i), sums[i]); p != "" {
			t.Error(p)
		}
	}
	if c.End(link) != "" || c.End(link^1) == "" {
		t.Error("the end is wrong")
	}
	for name, test := range map[string]func(*store.Chain) string{
		"left out":       func(c *store.Chain) string { c.Next(record(0), sums[0]); return c.Next(record(2), sums[2]) },
		"not the first":  func(c *store.Chain) string { return c.Next(record(1), sums[1]) },
		"without a sum":  func(c *store.Chain) string { c.Next(record(0), sums[0]); return c.NextWithout(1) },
		"of another":     func(c *store.Chain) string { c.Gen = 2; return c.Next(record(0), sums[0]) },
		"another offset": func(c *store.Chain) string { return c.Next(record(1), sums[0]) },
	} {
		if test(&store.Chain{Gen: 1}) == "" {
			t.Errorf("%s is not found", name)
		}
	}
	// Old records have no sum, and what follows one that could not be read is not known.
	c = store.Chain{Gen: 1}
	c.NextWithout(0)
	if p := c.Next(record(1), store.SumOf(1, record(1), 0)); p != "" {
		t.Error(p)
	}
	c.Break()
	if p := c.Next(record(3), sums[3]); p != "" {
		t.Error(p)
	}
}
