//go:build !linux

package sqlite

// networkKind returns the kind of network file system that dir is on. Here it
// cannot be told.
func networkKind(string) string { return "" }
