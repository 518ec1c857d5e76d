// Package guides holds the test that runs what the guides and the README show. It
// has no code of its own.
package guides
