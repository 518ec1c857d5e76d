//go:build !linux

package main

import "time"

// postLean falls back to Go's client: the lean client exists only on Linux, and so do the
// figures of processes.
func postLean(address string, requests []request, length time.Duration) ([]float64, int64, error) {
	return postWithClient(address, requests, length)
}
