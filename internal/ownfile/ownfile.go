// Package ownfile keeps the program away from files of others that have the names of its own.
package ownfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/gofrs/flock"

	"github.com/tapedeck/tapedeck"
)

// beginning is how much of a file [Check] looks at.
const beginning = 64 << 10

// Check returns an error if the program has not made what is at a path: it is a symbolic link
// or a folder, or ours returns false for the beginning of the file. An empty file and a file of
// zeros are accepted, because a crash leaves both.
func Check(path string, ours func(beginning []byte) bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return foreign(path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) { // another process has removed it
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, beginning))
	if err == nil && len(bytes.Trim(b, "\x00")) > 0 && !ours(b) {
		return foreign(path)
	}
	return err
}

// CheckFolder returns an error if there is something at a path that is not a folder, such as
// a link to one.
func CheckFolder(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		return foreign(path)
	}
	return err
}

// Lock returns a lock on the file at a path, which it creates.
func Lock(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|NoFollow))
}

func foreign(path string) error {
	return tapedeck.Errorf(tapedeck.Invalid, "%s is not a file that Tapedeck has made, and Tapedeck needs this name", path).
		WithHint("move it away, or choose another folder")
}
