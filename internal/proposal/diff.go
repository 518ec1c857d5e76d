package proposal

import (
	"fmt"
	"strings"
)

// contextLines is how many unchanged lines are shown before and after a change.
const contextLines = 3

// maxCells bounds the work of a comparison: lines before by lines after.
const maxCells = 1 << 20

// A line is a line of a diff.
type line struct {
	op   byte // ' ', '-' or '+'
	text string
}

// diff returns the change as a unified diff without the names of the files.
func (c *Change) diff() string {
	switch {
	case c.Diff != "":
		return c.Diff
	case c.Unknown:
		return "@@ the whole new content @@\n" + format(mark('+', split(c.After)))
	case c.Before == c.After:
		return "@@ nothing changes @@\n"
	}
	from := c.Line
	if c.Before == "" {
		from = 1 // a new file
	}
	return unified(compare(split(c.Before), split(c.After)), from) + lastLines(c.Before, c.After)
}

// split returns the lines of a text. A newline at the end ends the last line.
func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// lastLines returns a note if the newline at the end is added or removed, which no line
// shows.
func lastLines(before, after string) string {
	switch had, has := strings.HasSuffix(before, "\n"), strings.HasSuffix(after, "\n"); {
	case before == "" || after == "" || had == has:
		return ""
	case had:
		return "@@ the newline at the end is removed @@\n"
	}
	return "@@ a newline at the end is added @@\n"
}

// mark returns lines with a sign.
func mark(op byte, lines []string) []line {
	out := make([]line, len(lines))
	for i, text := range lines {
		out[i] = line{op, text}
	}
	return out
}

func format(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteByte(l.op)
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// compare returns all lines of both texts: the shortest edit from a to b. If it would
// take too long to find, all lines change between the common beginning and the common
// end.
func compare(a, b []string) []line {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := mark(' ', a[:head])
	out = append(out, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	return append(out, mark(' ', a[len(a)-tail:])...)
}

func middle(a, b []string) []line {
	if len(a)*len(b) > maxCells {
		return append(mark('-', a), mark('+', b)...)
	}
	common, w := common(a, b), len(b)+1
	var out []line
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, line{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*w+j] >= common[i*w+j+1]:
			out = append(out, line{'-', a[i]})
			i++
		default:
			out = append(out, line{'+', b[j]})
			j++
		}
	}
	return out
}

// common returns the length of the longest common subsequence for each pair of a suffix
// of a and a suffix of b.
func common(a, b []string) []int32 {
	w := len(b) + 1
	length := make([]int32, (len(a)+1)*w)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i*w+j] = length[(i+1)*w+j+1] + 1
			} else {
				length[i*w+j] = max(length[(i+1)*w+j], length[i*w+j+1])
			}
		}
	}
	return length
}

// unified returns the changed lines and the lines around them. from is the number of the
// first line; with 0 the diff has no line numbers.
func unified(lines []line, from int) string {
	var b strings.Builder
	oldLine, newLine := from, from
	for i := 0; i < len(lines); {
		begin, end := hunk(lines, i)
		oldLine, newLine = oldLine+count(lines[i:begin], '-'), newLine+count(lines[i:begin], '+')
		if begin == end {
			break
		}
		if from == 0 {
			b.WriteString("@@ @@\n")
		} else {
			fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(oldLine, lines[begin:end], '-'), span(newLine, lines[begin:end], '+'))
		}
		b.WriteString(format(lines[begin:end]))
		oldLine, newLine = oldLine+count(lines[begin:end], '-'), newLine+count(lines[begin:end], '+')
		i = end
	}
	return b.String()
}

// hunk returns the first group of changes from a line on, with the lines around it. It
// is empty if no change follows.
func hunk(lines []line, from int) (begin, end int) {
	first := from
	for first < len(lines) && lines[first].op == ' ' {
		first++
	}
	if first == len(lines) {
		return first, first
	}
	last := first
	for i := first; i < len(lines) && i-last <= 2*contextLines; i++ {
		if lines[i].op != ' ' {
			last = i
		}
	}
	return max(from, first-contextLines), min(len(lines), last+1+contextLines)
}

// count returns the number of lines in the old text (sign '-') or the new text ('+').
func count(lines []line, sign byte) int {
	n := 0
	for _, l := range lines {
		if l.op == ' ' || l.op == sign {
			n++
		}
	}
	return n
}

// span returns the first line and the number of lines of one side of a hunk.
func span(from int, lines []line, sign byte) string {
	switch n := count(lines, sign); n {
	case 0:
		return fmt.Sprintf("%d,0", from-1)
	case 1:
		return fmt.Sprint(from)
	default:
		return fmt.Sprintf("%d,%d", from, n)
	}
}
