package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropInput drops the input of a terminal that was not read yet, with partial lines.
func dropInput(in *os.File) { _ = unix.IoctlSetInt(int(in.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
