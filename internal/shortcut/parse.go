package shortcut

import (
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// What parse says of bytes that are not a request to be served.
const (
	notWhole = 0
	notTaken = -1
)

// parse reads the request at the beginning of b and returns its size, or one of
// the above. What it takes, net/http would take, for the same.
func parse(b []byte, takes func(method, path string) bool) (*http.Request, int) {
	end := bytes.Index(b, endOfHead)
	if end < 0 {
		return nil, unfinished(b, takes)
	}
	head := string(b[:end+2])
	line, rest, _ := strings.Cut(head, "\r\n")
	method, path, ok := requestLine(line)
	if !ok || !takes(method, path) {
		return nil, notTaken
	}
	r := &http.Request{
		Method: method, URL: &url.URL{Path: path}, RequestURI: path, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, 8), ContentLength: -1, Body: http.NoBody,
	}
	if !readHeader(r, rest) || r.Host == "" || r.ContentLength < 0 || r.ContentLength > bufferSize {
		return nil, notTaken
	}
	begin, n := end+len(endOfHead), int(r.ContentLength)
	if len(b) < begin+n {
		return nil, notWhole
	}
	if n > 0 {
		r.Body = io.NopCloser(bytes.NewReader(b[begin : begin+n]))
	}
	return r, begin + n
}

var endOfHead = []byte("\r\n\r\n")

// unfinished looks at a head that is not whole: whether it can still become one
// that is taken.
func unfinished(b []byte, takes func(method, path string) bool) int {
	line, _, whole := bytes.Cut(b, endOfHead[:2])
	if !whole {
		return notWhole
	}
	if method, path, ok := requestLine(string(line)); !ok || !takes(method, path) {
		return notTaken
	}
	return notWhole
}

// requestLine reads a line such as "POST /a/path HTTP/1.1", without a query and
// with nothing in the path that could stand for something else.
func requestLine(line string) (method, path string, ok bool) {
	method, rest, _ := strings.Cut(line, " ")
	path, version, _ := strings.Cut(rest, " ")
	if version != "HTTP/1.1" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
		return "", "", false
	}
	for i := range len(method) {
		if c := method[i]; c < 'A' || c > 'Z' {
			return "", "", false
		}
	}
	for i := range len(path) {
		if c := path[i]; !isWord(c) && c != '/' && c != '.' && c != '~' {
			return "", "", false
		}
	}
	return method, path, method != ""
}

// isWord reports whether c is a letter, a digit, - or _.
func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// readHeader reads lines of a header, each with its end. It reports false for
// any that is unusual.
func readHeader(r *http.Request, lines string) bool {
	values := make([]string, 0, 8) // for all of them
	for lines != "" {
		var line string
		line, lines, _ = strings.Cut(lines, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !isName(name) || !isPlain(value) {
			return false
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		switch name {
		case "Host":
			if r.Host != "" || !isHost(value) {
				return false
			}
			r.Host = value
			continue
		case "Content-Length":
			if r.ContentLength >= 0 || !isNumber(value) {
				return false
			}
			r.ContentLength, _ = strconv.ParseInt(value, 10, 64)
		case "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case "Transfer-Encoding", "Te", "Trailer", "Expect", "Upgrade", "Proxy-Connection", "Pragma":
			return false
		}
		if old := r.Header[name]; old != nil {
			r.Header[name] = append(old, value)
			continue
		}
		values = append(values, value)
		r.Header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return true
}

func isName(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) {
			return false
		}
	}
	return s != ""
}

// isPlain reports whether s is printable ASCII, with spaces.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func isHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isWord(c) && c != '.' && c != ':' && c != '[' && c != ']' {
			return false
		}
	}
	return s != ""
}

// isNumber reports whether s has digits only, and not many.
func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) <= 7
}
