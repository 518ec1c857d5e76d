// Package replay holds the tests that need a real terminal: of the player, and of
// what else listens to keys. It has no code of its own.
package replay
