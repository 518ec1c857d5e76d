// Package replay has the tests that need a real terminal: those of the player and of
// other commands that read keys. It has no other code.
package replay
