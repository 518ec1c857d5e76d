package memory_test

import (
	"testing"

	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/store/storetest"
)

func TestIndex(t *testing.T) {
	storetest.RunIndex(t, func(t testing.TB) (storetest.Store, storetest.Index) {
		clock := storetest.NewClock()
		m := memory.New(memory.Options{Now: clock.Now})
		x, err := m.OpenIndex()
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Store{Store: m, Clock: clock}, x
	})
}
