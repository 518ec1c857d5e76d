package exchange

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// maxLine is the largest number of bytes in a line, and in an input that is one
// JSON document.
const maxLine = 64 << 20

// maxNesting is how deep a value may be nested: the data of an event, and the
// levels of an envelope and a document around it.
const maxNesting = jsonobj.MaxNesting + 8

// A record is one JSON value of the input.
type record struct {
	line  int // where the value begins
	raw   []byte
	whole bool // the value is the whole input, over several lines
}

// An input reads JSON values: one per line, or one for the whole input. Lines that
// begin with # are comments, as in asciicast.
type input struct {
	r       *bufio.Reader
	buf     []byte
	lines   int // read
	begun   bool
	limit   int
	frame   []byte     // in Server-Sent Events: the data lines so far of a value with several lines
	heading bool       // a heading of Markdown, or a comment, comes before the first value
	stream  *sse.Lines // the input is Server-Sent Events: values are on lines that begin with "data:"; nil if it is not
}

func newInput(r io.Reader) *input {
	return &input{r: bufio.NewReaderSize(r, 64<<10), limit: maxLine}
}

// next returns the next value. Its bytes are valid until the next call. Blank
// lines are skipped. At the end the error is [io.EOF].
func (in *input) next() (record, error) {
	for {
		line, err := in.read(in.buf[:0])
		if errors.Is(err, io.EOF) && len(in.frame) > 0 {
			return record{}, notJSON(in.lines)
		}
		if err != nil {
			return record{}, err
		}
		in.buf = line
		if in.lines == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // a byte order mark, which some editors write
		}
		if line, err = in.framed(bytes.TrimSpace(line)); err != nil {
			return record{}, err
		}
		if len(line) == 0 || line[0] == '#' {
			in.heading = in.heading || !in.begun && bytes.HasPrefix(line, []byte("# "))
			continue
		}
		first := !in.begun
		in.begun = true
		switch {
		case json.Valid(line) && utf8.Valid(line): // encoding/json would accept other bytes
			return in.value(record{line: in.lines, raw: line})
		case first && (line[0] == '{' || line[0] == '['):
			return in.document(line)
		case first && in.stream == nil && utf8.Valid(line):
			return record{}, in.unreadable(line)
		}
		return record{}, unreadableLine(in.lines, line)
	}
}

// lookForEvents reads the input as Server-Sent Events if it looks like them.
func (in *input) lookForEvents() {
	start, _ := in.r.Peek(512)
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), "\r\n")
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(start, []byte(field)) {
			in.stream = sse.NewLines(in.r, in.limit)
		}
	}
}

// framed returns the value that ends with a line, nil if no value does. In
// Server-Sent Events, a value can have several lines, up to a blank one.
func (in *input) framed(line []byte) ([]byte, error) {
	if in.stream == nil {
		return line, nil
	}
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if data = bytes.TrimSpace(data); len(line) == 0 && len(in.frame) > 0 {
		return nil, notJSON(in.lines - 1)
	}
	if !ok || string(data) == "[DONE]" {
		return nil, nil
	}
	if len(in.frame)+len(data) > in.limit {
		return nil, in.tooLong(0)
	}
	in.frame = append(append(in.frame, data...), '\n')
	if !json.Valid(in.frame) {
		return nil, nil
	}
	whole := bytes.TrimSpace(in.frame)
	in.frame = in.frame[:0]
	return whole, nil
}

// read appends the next line to b, including its end.
func (in *input) read(b []byte) ([]byte, error) {
	if in.stream != nil {
		return in.readEvents(b)
	}
	start := len(b)
	for {
		part, err := in.r.ReadSlice('\n')
		if len(b)+len(part) > in.limit {
			return nil, in.tooLong(start)
		}
		b = append(b, part...)
		switch {
		case err == nil, err == io.EOF && len(b) > start:
			in.lines++
			return b, nil
		case err == io.EOF:
			return nil, io.EOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, in.unread(err)
		}
	}
}

// readEvents appends the next line of Server-Sent Events to b.
func (in *input) readEvents(b []byte) ([]byte, error) {
	line, err := in.stream.Next()
	switch {
	case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
		in.lines++
		return append(b, line...), nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.Is(err, sse.ErrTooLarge):
		return nil, in.tooLong(len(b))
	}
	return nil, in.unread(err)
}

func (in *input) unread(err error) error {
	return tapedeck.Errorf(tapedeck.Invalid, "the input cannot be read beyond line %d", in.lines).Because(err)
}

func (in *input) tooLong(start int) error {
	if start > 0 {
		return tapedeck.Errorf(tapedeck.TooLarge, "the input is one JSON document of more than %d MiB", in.limit>>20).
			WithHint("write one conversation or one message per line")
	}
	return tapedeck.Errorf(tapedeck.TooLarge, "line %d has more than %d MiB", in.lines+1, in.limit>>20)
}

// goesOn reports whether a value follows in the next line, such as the only event of an export
// as one JSON document.
func goesOn(line []byte) bool { return bytes.ContainsRune([]byte("[{,:"), rune(line[len(line)-1])) }

// document reads a document whose first line is not a value by itself, up to the
// end of the input.
func (in *input) document(first []byte) (record, error) {
	line := in.lines
	whole := append(bytes.Clone(first), '\n')
	for {
		start := len(whole)
		next, err := in.read(whole)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return record{}, err
		}
		if whole = next; in.lines == line+1 && !goesOn(first) && json.Valid(whole[start:]) {
			return record{}, notJSON(line) // one value per line after all, and the first is broken
		}
	}
	var syntax *json.SyntaxError
	var v json.RawMessage
	if errors.As(json.Unmarshal(whole, &v), &syntax) {
		at := whole[:min(int(syntax.Offset), len(whole))]
		return record{}, notJSON(line + bytes.Count(bytes.TrimSpace(at), []byte("\n")))
	}
	if !utf8.Valid(whole) {
		return record{}, unreadableLine(line, whole)
	}
	return in.value(record{line: line, raw: whole, whole: true})
}

func (in *input) value(rec record) (record, error) {
	if jsonobj.Nesting(rec.raw) > maxNesting {
		return record{}, tapedeck.Errorf(tapedeck.Invalid, "line %d of the input is nested more than %d levels deep", rec.line, maxNesting)
	}
	return rec, nil
}

// unreadable returns the error of an input that begins with a line that is no JSON.
func (in *input) unreadable(line []byte) error {
	what := ""
	switch start := strings.ToLower(string(line[:min(len(line), 20)])); {
	case strings.HasPrefix(start, "<!doctype html"), strings.HasPrefix(start, "<html"):
		what = "an HTML page"
	case string(line) == strings.Join(csvColumns, ","):
		what = "an export of the format csv"
	case in.heading:
		what = "Markdown"
	default:
		return tapedeck.Errorf(tapedeck.Invalid, "line %d of the input is not JSON", in.lines).
			WithHint("the formats are: %s", strings.Join(Formats(), ", "))
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the input is %s, which is for reading and cannot be imported", what).
		WithHint("export the session as ndjson; the formats of imports are: %s", strings.Join(Formats(), ", "))
}

// unreadableLine returns the error of a line that is no value.
func unreadableLine(number int, line []byte) error {
	if utf8.Valid(line) {
		return notJSON(number)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "line %d of the input is not UTF-8", number).WithHint("convert the file to UTF-8; nothing was imported")
}

func notJSON(line int) error {
	return tapedeck.Errorf(tapedeck.Invalid, "line %d of the input is not JSON", line).
		WithHint("nothing was imported; if the line is cut off, leave it out and try again")
}
