package lru

import "testing"

func TestTrimRemovesTheOldest(t *testing.T) {
	var m Map[string, int]
	m.Delete("none")
	for i, key := range []string{"a", "b", "c", "d"} {
		m.Put(key, i)
	}
	m.Get("a")
	m.Put("b", 10)
	m.Trim(3, func(v int) bool { return v == 2 }) // c is in use, so d goes
	for key, want := range map[string]bool{"a": true, "b": true, "c": true, "d": false} {
		if _, ok := m.Get(key); ok != want {
			t.Errorf("%s is there: %t", key, ok)
		}
	}
	if v, _ := m.Get("b"); v != 10 || m.Len() != 3 {
		t.Errorf("b is %d, and there are %d", v, m.Len())
	}
	m.Delete("b")
	m.Trim(0, nil)
	if m.Len() != 0 {
		t.Errorf("there are %d", m.Len())
	}
}
