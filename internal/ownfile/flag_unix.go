//go:build unix

package ownfile

import "syscall"

// NoFollow is a flag for [os.OpenFile], which then does not follow a symbolic link.
const NoFollow = syscall.O_NOFOLLOW
