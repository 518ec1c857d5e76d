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

// Limits of a search.
const (
	maxMatches  = 200
	maxLine     = 300       // bytes of a line in the result
	maxSearched = 256 << 20 // bytes of all files together
)

func (f *Folder) search() Tool {
	type args struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
		Files   string `json:"files"`
	}
	return readOnly(build("search", "Search text files for lines that match a regular expression (RE2). The result has path:line:text for each line.",
		`{"pattern":{"type":"string","description":"begin it with (?i) to ignore case"},
		"path":{"type":"string","description":"the file or folder to search in; . if absent"},
		"files":{"type":"string","description":"search only files with this name pattern, such as *.go"}}`, []string{"pattern"},
		func(ctx context.Context, _ Call, a args) Result {
			expr, err := regexp.Compile(a.Pattern)
			if err != nil {
				return Failed("The pattern is not a regular expression: %s.", err)
			}
			if _, err := path.Match(a.Files, ""); err != nil {
				return Failed("files is not a valid name pattern.")
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

// A finder is the state of a search over several files.
type finder struct {
	folder *Folder
	expr   *regexp.Regexp
	out    strings.Builder
	found  int
	left   int64 // bytes that it may still read
	more   bool  // the search has stopped at a limit
}

func (s *finder) file(ctx context.Context, name string) error {
	file, _ := s.folder.open(name, os.O_RDONLY)
	if file == nil {
		return nil // removed meanwhile, or not readable
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

// maxSearchLine is how many bytes of a line are searched.
const maxSearchLine = 1 << 20

// readLine reads a line. It drops the part beyond maxSearchLine.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line) < maxSearchLine {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull { //nolint:errorlint // ReadSlice returns it unwrapped
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
		s.out.WriteString("There are more: search fewer files, or use a narrower pattern.\n")
	}
	return s.out.String()
}

// A counted reader reads until the limit that several readers share is used up.
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
