package tool

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
)

// Bounds of a search.
const (
	maxMatches  = 200
	maxLine     = 300       // bytes of a line that are shown
	maxSearched = 256 << 20 // bytes of all files
)

func (f *Folder) search() Tool {
	type args struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
		Files   string `json:"files"`
	}
	return readOnly(build("search", "Search files of text for lines that match a regular expression (RE2). Each is told as path:line:text.",
		`{"pattern":{"type":"string","description":"begin it with (?i) to ignore case"},
		"path":{"type":"string","description":"the file or folder to search in; . if absent"},
		"files":{"type":"string","description":"only files of such a name, such as *.go"}}`, []string{"pattern"},
		func(ctx context.Context, _ Call, a args) Result {
			expr, err := regexp.Compile(a.Pattern)
			if err != nil {
				return Failed("The pattern is not one: %s.", err)
			}
			if _, err := path.Match(a.Files, ""); err != nil {
				return Failed("files is not a pattern of names.")
			}
			s := &finder{folder: f, expr: expr, left: maxSearched}
			err = f.walk(ctx, a.Path, func(name string, d fs.DirEntry) error {
				switch {
				case d.IsDir() && isStore(d):
					return fs.SkipDir
				case !d.Type().IsRegular() || !matches(a.Files, name):
					return nil
				}
				return s.file(ctx, name)
			})
			if err != nil {
				return f.failed(a.Path, err)
			}
			return Result{Text: s.result()}
		}))
}

// A finder searches one file after the other.
type finder struct {
	folder *Folder
	expr   *regexp.Regexp
	out    strings.Builder
	found  int
	left   int64 // bytes that may yet be read
	more   bool  // not all was searched
}

func (s *finder) file(ctx context.Context, name string) error {
	file, _ := s.folder.open(name, os.O_RDONLY)
	if file == nil {
		return nil // gone meanwhile, or not for us
	}
	defer file.Close()
	in := bufio.NewReaderSize(&counted{file, &s.left}, 64<<10)
	if head, _ := in.Peek(8000); strings.ContainsRune(string(head), 0) {
		return nil // not text
	}
	for n := 1; ; n++ {
		line, err := readLine(in)
		if s.expr.MatchString(line) {
			if s.found == maxMatches {
				s.more = true
				return fs.SkipAll
			}
			s.found++
			fmt.Fprintf(&s.out, "%s:%d:%s\n", name, n, shorten(line))
		}
		switch {
		case err != nil && s.left <= 0:
			s.more = true
			return fs.SkipAll
		case err != nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// maxSearchLine is how much of a line is looked at, in bytes.
const maxSearchLine = 1 << 20

// readLine reads a line. What is beyond maxSearchLine of it is dropped.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line) < maxSearchLine {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull { //nolint:errorlint // ReadSlice returns it as it is
			return strings.TrimRight(string(line), "\r\n"), err
		}
	}
}

func shorten(line string) string {
	if len(line) > maxLine {
		line = line[:maxLine] + "…"
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}

func (s *finder) result() string {
	if s.found == 0 && !s.more {
		return "Nothing was found."
	}
	if s.more {
		s.out.WriteString("There is more: search in fewer files or for less.\n")
	}
	return s.out.String()
}

// A counted reader reads until nothing is left of what all may read together.
type counted struct {
	in   io.Reader
	left *int64
}

func (c *counted) Read(p []byte) (int, error) {
	if *c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.in.Read(p)
	*c.left -= int64(n)
	return n, err
}
