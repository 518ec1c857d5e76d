//go:build !linux && !darwin && !freebsd

package main

// freeSpace is unknown on other systems.
func freeSpace(string) (int64, bool) { return 0, false }
