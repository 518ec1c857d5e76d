package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// An answer decodes a response of HTTP/1.1 that arrives in pieces. Anything that it does
// not understand is an error, because the benchmark must check every answer.
type answer struct {
	status int
	headed bool   // the head is complete
	body   int    // the length of the body in bytes, or one of the constants below
	got    []byte // the bytes so far: of the head, then of the body
}

func (a *answer) reset() { *a = answer{got: a.got[:0]} }

// maxAnswer is the limit of an answer, in bytes.
const maxAnswer = 1 << 20

// add adds a piece, and reports whether the answer is complete.
func (a *answer) add(piece []byte) (bool, error) {
	a.got = append(a.got, piece...)
	if len(a.got) > maxAnswer {
		return false, fmt.Errorf("an answer is longer than %d bytes", maxAnswer)
	}
	if !a.headed {
		end := bytes.Index(a.got, []byte("\r\n\r\n"))
		if end < 0 {
			return false, nil
		}
		if err := a.readHead(string(a.got[:end+2])); err != nil {
			return false, err
		}
		a.headed, a.got = true, append(a.got[:0], a.got[end+4:]...)
	}
	if a.body == inChunks {
		return a.endOfChunks()
	}
	if len(a.got) > a.body {
		return false, fmt.Errorf("an answer has %d bytes more than its declared length", len(a.got)-a.body)
	}
	return len(a.got) == a.body, nil
}

const (
	inChunks = -1
	unsaid   = -2
)

func (a *answer) readHead(head string) error {
	line, rest, _ := strings.Cut(head, "\r\n")
	version, status, _ := strings.Cut(line, " ")
	status, _, _ = strings.Cut(status, " ")
	n, err := strconv.Atoi(status)
	if version != "HTTP/1.1" || err != nil || n < 200 || n > 599 {
		return fmt.Errorf("an answer begins with %.80q", line)
	}
	a.status, a.body = n, unsaid
	for line := range strings.SplitSeq(strings.TrimSuffix(rest, "\r\n"), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok && rest != "" {
			return fmt.Errorf("an answer has the header %.80q", line)
		}
		value = strings.TrimSpace(value)
		switch {
		case strings.EqualFold(name, "Content-Length"):
			if a.body, err = strconv.Atoi(value); err != nil || a.body < 0 {
				return fmt.Errorf("an answer has the Content-Length %.80q", value)
			}
		case strings.EqualFold(name, "Transfer-Encoding"):
			if !strings.EqualFold(value, "chunked") {
				return fmt.Errorf("an answer has the Transfer-Encoding %.80q", value)
			}
			a.body = inChunks
		case strings.EqualFold(name, "Connection") && strings.EqualFold(value, "close"):
			return fmt.Errorf("an answer (%d) closes the connection", n)
		}
	}
	if n == 204 || n == 304 {
		a.body = 0
	}
	if a.body == unsaid {
		return fmt.Errorf("an answer (%d) has no length", n)
	}
	return nil
}

// endOfChunks reports whether a chunked body is complete.
func (a *answer) endOfChunks() (bool, error) {
	for rest := a.got; ; {
		line, after, ok := bytes.Cut(rest, []byte("\r\n"))
		if !ok {
			return false, nil
		}
		n, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return false, fmt.Errorf("a chunk begins with %.80q", line)
		}
		if len(after) < int(n)+2 {
			return false, nil
		}
		if string(after[n:n+2]) != "\r\n" {
			return false, fmt.Errorf("a chunk is longer than its size of %d bytes", n)
		}
		if rest = after[n+2:]; n == 0 {
			if len(rest) > 0 {
				return false, fmt.Errorf("an answer continues after its last chunk")
			}
			return true, nil
		}
	}
}
