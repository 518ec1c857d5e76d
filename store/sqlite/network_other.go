//go:build !linux

package sqlite

// networkKind returns "": on this system the kind of a file system is unknown.
func networkKind(string) string { return "" }
