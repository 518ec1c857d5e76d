//go:build unix && !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// fread is FREAD: the queue of what was typed.
const fread = 1

// forget drops what was typed into a terminal and not read, also of a line that
// has begun.
func forget(in *os.File) { _ = unix.IoctlSetPointerInt(int(in.Fd()), unix.TIOCFLUSH, fread) }
