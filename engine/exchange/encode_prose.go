package exchange

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// flush writes the complete entries before the first incomplete one. With all, or
// if too much is waiting, it writes everything.
func (t *transcript) flush(all bool) {
	all = all || len(t.held) > maxHeld || t.bytes > maxHeldBytes
	n := 0
	for _, one := range t.held {
		if !one.done && !all {
			break
		}
		t.entry(one)
		t.bytes -= one.text.Len()
		if one.result != nil {
			t.bytes -= len(*one.result)
		}
		n++
	}
	t.held = slices.Delete(t.held, 0, n)
	if all {
		clear(t.open)
		t.bytes = 0
	}
}

func (t *transcript) entry(one *entry) {
	if one.invocation != "" && one.invocation != t.turn {
		t.turn = one.invocation
		t.turns++
		t.string("\n## ", strconv.Itoa(t.turns), " · ", one.at.UTC().Format("2006-01-02 15:04:05"))
		if one.thread != "main" {
			t.string(" · thread ", inline(one.thread))
		}
		t.string("\n")
	}
	switch one.kind {
	case "thinking":
		t.string("\n<details><summary>Thinking</summary>\n\n", quote(one.whole()), "\n</details>\n")
	case "call":
		t.call(one)
	default:
		t.string("\n### ", inline(orDefault(one.who, "(continued)")), "\n\n", quote(one.whole()))
	}
}

func (t *transcript) call(one *entry) {
	if !one.continued {
		t.string("\n### Tool")
		if one.who != "" { // without it, the name was erased
			t.string(" ", codeSpan(one.who))
		}
		t.string("\n")
	}
	if args := one.whole(); args != "" {
		t.string("\n", block("json", pretty(args)))
	}
	switch {
	case one.result == nil && !one.done:
	case one.result == nil:
		t.string("\nNo answer.\n")
	case one.failed:
		t.string("\nFailed:\n\n", block("", *one.result))
	default:
		t.string("\nAnswer:\n\n", block("", *one.result))
	}
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func jsonInt(n int64) string { return strconv.FormatInt(n, 10) }

// pretty indents JSON. Other text is returned as it is.
func pretty(s string) string {
	var b bytes.Buffer
	if len(s) < 1<<20 && jsonobj.Nesting([]byte(s)) < maxNesting && json.Indent(&b, []byte(s), "", "  ") == nil {
		return b.String()
	}
	return s
}

// printable returns text whose only control characters are \n and tab. A
// transcript may be shown in a terminal, and in Markdown \r ends a line.
func printable(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// tags escapes characters that Markdown would read as HTML.
func tags(s string) string {
	return tag.ReplaceAllStringFunc(s, func(m string) string { return "&lt;" + m[1:] })
}

var tag = regexp.MustCompile(`<[A-Za-z/!?]`)

// inline returns text for one line of Markdown, without markup.
func inline(s string) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	return markup.ReplaceAllString(tags(s), `\$0`)
}

var markup = regexp.MustCompile("[\\\\`*_\\[\\]#|~]")

// codeSpan returns text as code within a line.
func codeSpan(s string) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	ticks := strings.Repeat("`", longest(s, '`')+1)
	if s == "" || s[0] == '`' || s[len(s)-1] == '`' {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// block returns text as a block of code. The text cannot end the block.
func block(info, s string) string {
	s = printable(s)
	fence := strings.Repeat("`", max(3, longest(s, '`')+1))
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return fence + info + "\n" + s + fence + "\n"
}

func longest(s string, c byte) (most int) {
	run := 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}

var fenceLine = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+#.-]*)")

// quote returns a message, which often is Markdown itself, as a quotation. It
// replaces the fences of code blocks, so that none can stay open, and allows no
// HTML outside of them.
func quote(s string) string {
	var out []string
	var code []string
	fence, info := "", ""
	for _, line := range strings.Split(strings.TrimRight(printable(s), "\n"), "\n") {
		m := fenceLine.FindStringSubmatch(line)
		switch {
		case fence == "" && m != nil && (m[1][0] != '`' || !strings.Contains(line[strings.Index(line, m[1])+len(m[1]):], "`")):
			fence, info, code = m[1], m[2], nil
		case fence == "":
			out = append(out, tags(line))
		case m != nil && closes(line, fence):
			out = append(out, fenced(info, code)...)
			fence = ""
		default:
			code = append(code, line)
		}
	}
	if fence != "" {
		out = append(out, fenced(info, code)...)
	}
	return "> " + strings.Join(out, "\n> ") + "\n"
}

// closes reports whether a line ends a block that fence began.
func closes(line, fence string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(fence) && strings.Trim(line, fence[:1]) == ""
}

func fenced(info string, code []string) []string {
	return strings.Split(strings.TrimSuffix(block(info, strings.Join(code, "\n")), "\n"), "\n")
}
