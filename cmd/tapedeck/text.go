package main

import (
	"io"
	"strings"
)

// maxStdinText is how many bytes a message from standard input has at most.
const maxStdinText = 1 << 20

// text returns the text that an argument stands for: that of standard input, without the
// last line break, if the argument is "-". An empty or longer text is a usage error.
func (e *env) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := io.ReadAll(io.LimitReader(e.stdin, maxStdinText+1))
	if err != nil {
		return "", err
	}
	s := strings.TrimRight(string(b), "\r\n")
	switch {
	case len(b) > maxStdinText:
		return "", usageError("standard input has more than %d bytes, the most that a message may have", maxStdinText)
	case strings.TrimSpace(s) == "":
		return "", usageError("standard input has no text")
	}
	return s, nil
}
