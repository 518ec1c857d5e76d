// Package stress tests the real program with all verbs at once. The test fails if a verb
// stalls.
package stress
