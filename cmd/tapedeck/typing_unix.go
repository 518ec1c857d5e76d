//go:build unix

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitTyped waits until a line was typed, or the terminal is gone. It reports
// false if the system does not tell.
func awaitTyped(in *os.File) bool { return pollTyped(in, -1) }

// isTyped reports whether a read returns at once.
func isTyped(in *os.File) bool { return pollTyped(in, 0) }

func pollTyped(in *os.File, milliseconds int) bool {
	for {
		fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, milliseconds)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && fds[0].Revents&(unix.POLLIN|unix.POLLHUP|unix.POLLERR) != 0
		}
	}
}
