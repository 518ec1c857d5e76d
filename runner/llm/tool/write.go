package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck/tapedeck/internal/proposal"
)

func (f *Folder) write() Tool {
	type args struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	t := build("write_file", "Write a text file. It replaces a file that exists, and makes missing folders of the path.",
		`{"path":{"type":"string"},"content":{"type":"string"}}`, []string{"path", "content"},
		func(_ context.Context, _ Call, a args) Result {
			if parent := filepath.Dir(f.name(a.Path)); parent != "." {
				if err := f.root.MkdirAll(parent, 0o755); err != nil {
					return f.failed(a.Path, err)
				}
			}
			return f.writeFile(a.Path, a.Content, fmt.Sprintf("%s has %d bytes now.", a.Path, len(a.Content)))
		})
	t.Propose = propose(func(a args) proposal.Draft {
		before, bad := f.text(a.Path)
		_, missing := f.root.Stat(f.name(a.Path))
		return proposal.Draft{Changes: []proposal.Change{{
			Path: a.Path, Before: before, After: a.Content, Line: 1, Unknown: bad.Failed && missing == nil,
		}}}
	})
	t.Scope = scope(func(a args) (string, string) { return f.name(a.Path), "every write_file of " + short(a.Path) })
	return checked(t, func(a args) Result { return f.writable(a.Path, a.Content) })
}

// short returns the end of a path that fits on a button.
func short(path string) string {
	if r := []rune(path); len(r) > maxShort {
		return "…" + string(r[len(r)-maxShort:])
	}
	return path
}

const maxShort = 80

// writable returns why a file cannot have a content, as far as that is known before.
func (f *Folder) writable(path, content string) Result {
	if len(content) > maxFile {
		return Failed("%s would have more than %d MiB.", path, maxFile>>20)
	}
	switch info, err := f.root.Stat(f.name(path)); {
	case err == nil && !info.Mode().IsRegular():
		return Failed("%s is not a file.", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return f.failed(path, err)
	}
	return Result{}
}

// writeFile writes a whole file.
func (f *Folder) writeFile(path, content, done string) Result {
	if bad := f.writable(path, content); bad.Failed {
		return bad
	}
	file, bad := f.open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if file == nil {
		return bad
	}
	_, err := file.WriteString(content)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return f.failed(path, err)
	}
	return Result{Text: done}
}

func (f *Folder) edit() Tool {
	type args struct {
		Path string `json:"path"`
		Old  string `json:"old"`
		New  string `json:"new"`
		All  bool   `json:"all"`
	}
	t := build("edit_file", "Replace a piece of a text file by another. The file must have the piece exactly as given, white space included, and only once unless all is true.",
		`{"path":{"type":"string"},
		"old":{"type":"string","description":"the piece to replace"},
		"new":{"type":"string","description":"the new piece"},
		"all":{"type":"boolean","description":"replace every occurrence"}}`, []string{"path", "old", "new"},
		func(_ context.Context, _ Call, a args) Result {
			text, n, bad := f.edited(a.Path, a.Old, a.New, a.All)
			if bad.Failed {
				return bad
			}
			return f.writeFile(a.Path, text, fmt.Sprintf("Replaced in %d places.", n))
		})
	t.Propose = propose(func(a args) proposal.Draft {
		c := proposal.Change{Path: a.Path, Before: a.Old, After: a.New}
		if text, bad := f.text(a.Path); !bad.Failed && a.Old != "" && strings.Contains(text, a.Old) {
			c.Before, c.After, c.Line = text, strings.ReplaceAll(text, a.Old, a.New), 1 // the whole file, so that the diff has line numbers
		}
		return proposal.Draft{Changes: []proposal.Change{c}}
	})
	t.Scope = scope(func(a args) (string, string) { return f.name(a.Path), "every edit_file of " + short(a.Path) })
	return checked(t, func(a args) Result {
		_, _, bad := f.edited(a.Path, a.Old, a.New, a.All)
		return bad
	})
}

// edited returns the text of a file after an edit, and in how many places it differs.
func (f *Folder) edited(path, before, after string, all bool) (text string, n int, bad Result) {
	if text, bad = f.text(path); bad.Failed {
		return "", 0, bad
	}
	switch n = strings.Count(text, before); {
	case before == "":
		return "", 0, Failed("old is empty. Use write_file to make a file.")
	case n == 0:
		return "", 0, Failed("%s does not have that piece. Read it again.", path)
	case n > 1 && !all:
		return "", 0, Failed("%s has that piece %d times. Add text around the piece, or set all.", path, n)
	}
	text = strings.ReplaceAll(text, before, after)
	return text, n, f.writable(path, text)
}
