// Package lru has a map that knows in which order its entries were used.
package lru

import "container/list"

// A Map keeps its entries in the order of their last use. The zero value is
// empty. It has no lock of its own.
type Map[K comparable, V any] struct {
	byKey  map[K]*list.Element
	recent list.List // of entry, newest first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// Len returns how many entries there are.
func (m *Map[K, V]) Len() int { return m.recent.Len() }

// Get returns the value of a key, and counts as its use.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	el, ok := m.byKey[key]
	if !ok {
		return value, false
	}
	m.recent.MoveToFront(el)
	return el.Value.(*entry[K, V]).value, true
}

// Put sets the value of a key, and counts as its use.
func (m *Map[K, V]) Put(key K, value V) {
	if el, ok := m.byKey[key]; ok {
		el.Value.(*entry[K, V]).value = value
		m.recent.MoveToFront(el)
		return
	}
	if m.byKey == nil {
		m.byKey = map[K]*list.Element{}
	}
	m.byKey[key] = m.recent.PushFront(&entry[K, V]{key, value})
}

// Delete removes a key.
func (m *Map[K, V]) Delete(key K) {
	if el, ok := m.byKey[key]; ok {
		m.recent.Remove(el)
		delete(m.byKey, key)
	}
}

// Trim removes the entries that were not used for longest until there are at most
// limit. It does not remove entries that inUse reports as in use. inUse may be nil.
func (m *Map[K, V]) Trim(limit int, inUse func(V) bool) {
	for el := m.recent.Back(); el != nil && m.recent.Len() > limit; {
		e, newer := el.Value.(*entry[K, V]), el.Prev()
		if inUse == nil || !inUse(e.value) {
			m.Delete(e.key)
		}
		el = newer
	}
}
