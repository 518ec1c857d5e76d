//go:build !unix

package main

import "os"

const canAwaitTyped = false

func awaitTyped(_, _ *os.File) bool { return false }

func isTyped(*os.File) bool { return false }

// forget does nothing: there is no call for it.
func forget(*os.File) {}
