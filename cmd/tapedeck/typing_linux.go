package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget drops what was typed into a terminal and not read, also of a line that
// has begun.
func forget(in *os.File) { _ = unix.IoctlSetInt(int(in.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
