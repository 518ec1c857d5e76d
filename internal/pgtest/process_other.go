//go:build !unix

package pgtest

import (
	"os"
	"syscall"
)

var syscallQuit = os.Kill

func asOther() *syscall.SysProcAttr { return nil }
