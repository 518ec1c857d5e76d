// Package keyfile writes the files that have keys.
package keyfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file, which only its owner can read. After a crash it has the old
// content or the new one.
func Write(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // only its owner can read it
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// syncFolder writes the name of a new file to the disk. Some systems cannot; there the
// name may be lost in a crash, and a new key is created.
func syncFolder(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}
