package proposal

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxPlaced is the size of the largest file in which Locate looks for a change, in bytes.
const maxPlaced = 4 << 20

// Locate finds out at which line of its file each change begins: the file in the agent's
// folder has the old text now. Agents give only the old text, which is often a piece of the
// file. A place that is not certain stays unknown, and the diff has no line numbers then.
func (d *Draft) Locate(folder string) {
	var root *os.Root
	for i := range d.Changes {
		c := &d.Changes[i]
		if c.Line > 0 || c.Before == "" || c.Diff != "" || c.Unknown {
			continue
		}
		if root == nil {
			var err error
			if root, err = os.OpenRoot(folder); err != nil {
				return
			}
			defer func() { _ = root.Close() }() // it was only read
		}
		c.Line = lineOf(read(root, folder, c.Path), c.Before)
	}
}

// read returns a file of a folder; "" if it is not a file there, or too large.
func read(root *os.Root, folder, path string) string {
	if filepath.IsAbs(path) {
		inside, err := filepath.Rel(folder, path)
		if err != nil {
			return ""
		}
		path = inside
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxPlaced {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPlaced))
	if err != nil {
		return ""
	}
	return string(b)
}

// lineOf returns the line at which a piece of a text begins, from 1; 0 if the text has the
// piece not at all, or more than once.
func lineOf(text, piece string) int {
	before, after, found := strings.Cut(text, piece)
	if !found || strings.Contains(after, piece) {
		return 0
	}
	return strings.Count(before, "\n") + 1
}
