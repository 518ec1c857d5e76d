package tool

import (
	"context"
	"fmt"
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
	t := build("write_file", "Write a file of text, anew or in place of what it has. Folders on the way to it are made.",
		`{"path":{"type":"string"},"content":{"type":"string"}}`, []string{"path", "content"},
		func(_ context.Context, _ Call, a args) Result {
			if parent := filepath.Dir(f.name(a.Path)); parent != "." {
				if err := f.root.MkdirAll(parent, 0o755); err != nil {
					return f.failed(a.Path, err)
				}
			}
			return f.put(a.Path, a.Content, fmt.Sprintf("%s has %d bytes now.", a.Path, len(a.Content)))
		})
	t.Propose = propose(func(a args) proposal.Draft {
		before, bad := f.text(a.Path)
		_, missing := f.root.Stat(f.name(a.Path))
		return proposal.Draft{Changes: []proposal.Change{{
			Path: a.Path, Before: before, After: a.Content, Unknown: bad.Failed && missing == nil,
		}}}
	})
	t.Scope = scope(func(a args) (string, string) { return f.name(a.Path), "every write_file of " + short(a.Path) })
	return t
}

// short returns as much of a path as fits on a button.
func short(path string) string {
	if r := []rune(path); len(r) > maxShort {
		return "…" + string(r[len(r)-maxShort:])
	}
	return path
}

const maxShort = 80

// put writes a file whole.
func (f *Folder) put(path, content, done string) Result {
	if len(content) > maxFile {
		return Failed("%s would have more than %d MiB.", path, maxFile>>20)
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
	t := build("edit_file", "Replace a piece of a file of text by another. The piece must be there exactly as given, white space included, and only once, unless all is true.",
		`{"path":{"type":"string"},
		"old":{"type":"string","description":"the piece as it is"},
		"new":{"type":"string","description":"as it is to be"},
		"all":{"type":"boolean","description":"replace it wherever it is"}}`, []string{"path", "old", "new"},
		func(_ context.Context, _ Call, a args) Result {
			text, bad := f.text(a.Path)
			if bad.Failed {
				return bad
			}
			switch n := strings.Count(text, a.Old); {
			case a.Old == "":
				return Failed("old is empty. To make a file use write_file.")
			case n == 0:
				return Failed("%s does not have that piece. Read it again.", a.Path)
			case n > 1 && !a.All:
				return Failed("%s has that piece %d times. Give more of what is around it, or say all.", a.Path, n)
			default:
				return f.put(a.Path, strings.ReplaceAll(text, a.Old, a.New), fmt.Sprintf("Replaced in %d places.", n))
			}
		})
	t.Propose = propose(func(a args) proposal.Draft {
		c := proposal.Change{Path: a.Path, Before: a.Old, After: a.New}
		if text, bad := f.text(a.Path); !bad.Failed && a.Old != "" && strings.Contains(text, a.Old) {
			c.Before, c.After = text, strings.ReplaceAll(text, a.Old, a.New) // with the numbers of the lines
		}
		return proposal.Draft{Changes: []proposal.Change{c}}
	})
	t.Scope = scope(func(a args) (string, string) { return f.name(a.Path), "every edit_file of " + short(a.Path) })
	return t
}
