// Package crash holds the tests that kill the real program, or take away its
// disk. It has no code of its own.
package crash
