// Package stress holds the test that uses the real program with all verbs at
// once, and fails when one of them stalls. It has no code of its own.
package stress
