//go:build !unix

package sqlite

import (
	"io/fs"
	"os"
)

// isOurs is true: the folder for temporary files belongs to the user.
func isOurs(fs.FileInfo) bool { return true }

// An identity tells one file from all others.
type identity struct{ info fs.FileInfo }

func identify(path string) (identity, error) {
	info, err := os.Stat(path)
	return identity{info}, err
}

func (i identity) is(other identity) bool { return os.SameFile(i.info, other.info) }
