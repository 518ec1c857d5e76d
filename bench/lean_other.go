//go:build !linux

package main

import "time"

// postLean is made for Linux only, as are the figures of processes.
func postLean(address string, requests []request, length time.Duration) ([]float64, int64, error) {
	return postWithClient(address, requests, length)
}
