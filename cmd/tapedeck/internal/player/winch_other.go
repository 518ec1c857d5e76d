//go:build !unix

package player

import "os"

// notifyResized does nothing: there is no signal for it. The size is asked for
// before each frame anyway.
func notifyResized(chan<- os.Signal) {}
