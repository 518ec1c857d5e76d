//go:build !linux

package sqlite

import (
	"errors"
	"io/fs"
	"os"
)

// errNoHoles means that the file system cannot make holes in files.
var errNoHoles = errors.New("the file system cannot make holes in files")

// punch makes no holes on this system.
func punch(*os.File, int64, int64) error { return errNoHoles }

// allocated returns how many bytes a file takes on the disk.
func allocated(info fs.FileInfo) int64 { return info.Size() }
