//go:build !unix

package sqlite

import (
	"io/fs"
	"os"
)

// isOurs returns true, because the folder for temporary files belongs to the user.
func isOurs(fs.FileInfo) bool { return true }

// An identity distinguishes a file from all others.
type identity struct{ info fs.FileInfo }

func identify(path string) (identity, error) {
	info, err := os.Stat(path)
	return identity{info}, err
}

func (i identity) is(other identity) bool { return os.SameFile(i.info, other.info) }
