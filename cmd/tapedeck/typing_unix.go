//go:build unix

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// canAwaitTyped reports whether awaitTyped and isTyped work on this system.
const canAwaitTyped = true

// awaitTyped waits until the user has typed a line, or the terminal was closed, and
// returns true. It returns false when the other end of stop is closed.
func awaitTyped(in, stop *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(stop.Fd()), Events: unix.POLLIN}, {Fd: int32(in.Fd()), Events: unix.POLLIN}}
	return pollTyped(fds, -1) && fds[0].Revents == 0
}

// isTyped reports whether a read would return at once.
func isTyped(in *os.File) bool {
	return pollTyped([]unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}}, 0)
}

// pollTyped reports whether one of the files has an event.
func pollTyped(fds []unix.PollFd, milliseconds int) bool {
	for {
		n, err := unix.Poll(fds, milliseconds)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}
