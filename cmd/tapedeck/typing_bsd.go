//go:build unix && !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// fread is FREAD, the input queue.
const fread = 1

// dropInput drops the input of a terminal that was not read yet, with partial lines.
func dropInput(in *os.File) { _ = unix.IoctlSetPointerInt(int(in.Fd()), unix.TIOCFLUSH, fread) }
