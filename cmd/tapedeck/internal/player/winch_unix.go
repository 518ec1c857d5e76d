//go:build unix

package player

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyResized sends to c when the size of the terminal changes.
func notifyResized(c chan<- os.Signal) { signal.Notify(c, syscall.SIGWINCH) }
