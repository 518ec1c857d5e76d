//go:build !unix

package main

import "os"

const canAwaitTyped = false

func awaitTyped(_, _ *os.File) bool { return false }

func isTyped(*os.File) bool { return false }

// dropInput does nothing: this system has no call for it.
func dropInput(*os.File) {}
