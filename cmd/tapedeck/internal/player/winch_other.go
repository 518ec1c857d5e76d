//go:build !unix

package player

import "os"

// notifyResized does nothing: this system has no signal for it. The screen reads the
// size before each frame anyway.
func notifyResized(chan<- os.Signal) {}
