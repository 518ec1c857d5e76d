package main

import (
	"testing"
	"time"
)

// eventually polls a condition that another process changes.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("never")
		}
	}
}
