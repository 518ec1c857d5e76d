// Package guides has the test that runs the commands in the guides and the README. It
// has no other code.
package guides
