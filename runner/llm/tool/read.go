package tool

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// Limits of the result of one call.
const (
	maxText  = 128 << 10 // bytes
	maxFiles = 2000      // files in a list
)

func (f *Folder) list() Tool {
	type args struct {
		Path      string `json:"path"`
		Recursive bool   `json:"recursive"`
	}
	return readOnly(build("list_files", "List the files of a folder, with their sizes in bytes. Folders end in a slash.",
		`{"path":{"type":"string","description":"the folder; . if absent"},
		"recursive":{"type":"boolean","description":"list the files in folders below, too"}}`, nil,
		func(ctx context.Context, _ Call, a args) Result {
			var b strings.Builder
			n := 0
			err := f.walk(ctx, a.Path, func(name string, d fs.DirEntry) error {
				if n++; n > maxFiles {
					fmt.Fprintf(&b, "There are more than %d.\n", maxFiles)
					return fs.SkipAll
				}
				if d.IsDir() {
					b.WriteString(name + "/\n")
					if !a.Recursive || isStore(d) {
						return fs.SkipDir
					}
					return nil
				}
				size := int64(0)
				if info, err := d.Info(); err == nil {
					size = info.Size()
				}
				fmt.Fprintf(&b, "%s\t%d\n", name, size)
				return nil
			})
			switch {
			case err != nil:
				return f.failed(a.Path, err)
			case n == 0:
				return Result{Text: "The folder is empty."}
			}
			return Result{Text: b.String()}
		}))
}

// isStore reports whether a folder has the internal files of a version control system.
// There are many of them, and they are not useful to a model.
func isStore(d fs.DirEntry) bool {
	return d.Name() == ".git" || d.Name() == ".hg" || d.Name() == ".jj"
}

// walk visits the files and folders in a folder, sorted by name. It does not follow
// symbolic links.
func (f *Folder) walk(ctx context.Context, folder string, visit func(name string, d fs.DirEntry) error) error {
	start := filepath.ToSlash(f.name(folder))
	return fs.WalkDir(f.root.FS(), start, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == start:
			return err
		case err != nil:
			return fs.SkipDir // a folder that cannot be read
		case name == start && d.IsDir():
			return nil
		}
		return visit(name, d)
	})
}

func (f *Folder) read() Tool {
	type args struct {
		Path   string `json:"path"`
		Offset int    `json:"offset"`
		Limit  int    `json:"limit"`
	}
	return readOnly(build("read_file", fmt.Sprintf("Read a text file. A result has at most %d KiB. If the file is longer, read the next lines with offset.", maxText>>10),
		`{"path":{"type":"string"},
		"offset":{"type":"integer","description":"the first line, from 1","minimum":1},
		"limit":{"type":"integer","description":"how many lines; all if absent","minimum":1}}`, []string{"path"},
		func(_ context.Context, _ Call, a args) Result {
			text, bad := f.text(a.Path)
			if bad.Failed {
				return bad
			}
			return Result{Text: excerpt(text, a.Offset, a.Limit)}
		}))
}

// excerpt returns lines of a text. If it does not return all lines, it adds which ones
// they are.
func excerpt(text string, first, limit int) string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	first = max(first, 1)
	if first > len(lines) {
		return fmt.Sprintf("[the file has %d lines]", len(lines))
	}
	var b strings.Builder
	n := first - 1
	for n < len(lines) && (limit <= 0 || n < first-1+limit) && b.Len()+len(lines[n]) <= maxText {
		b.WriteString(lines[n])
		n++
	}
	if n == first-1 { // the first line alone is too long
		b.WriteString(strings.ToValidUTF8(lines[n][:maxText], "") + "…\n")
		n++
	}
	if n < len(lines) || first > 1 {
		fmt.Fprintf(&b, "\n[lines %d to %d of %d]", first, n, len(lines))
	}
	return b.String()
}

// matches reports whether a file matches a pattern. A pattern with a slash matches the
// path, any other the name.
func matches(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	ok, _ := path.Match(pattern, name) // the caller has checked the pattern
	return ok
}
