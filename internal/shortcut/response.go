package shortcut

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A response gathers an answer, which is short.
type response struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !w.hasBody() {
		return 0, http.ErrBodyNotAllowed
	}
	w.body = append(w.body, p...)
	return len(p), nil
}

func (w *response) hasBody() bool {
	return w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// last reports whether the handler wants the connection to be closed.
func (w *response) last() bool { return strings.EqualFold(w.header.Get("Connection"), "close") }

// append appends the answer as it is sent.
func (w *response) append(b []byte) []byte {
	w.WriteHeader(http.StatusOK)
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(w.status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(w.status)...)
	b = append(b, "\r\n"...)
	for name, values := range w.header {
		if name == "Content-Length" || name == "Transfer-Encoding" || name == "Date" {
			continue
		}
		for _, v := range values {
			b = appendLine(b, name, v)
		}
	}
	b = appendLine(b, "Date", date())
	if w.hasBody() {
		if len(w.body) > 0 && w.header["Content-Type"] == nil {
			b = appendLine(b, "Content-Type", http.DetectContentType(w.body))
		}
		b = appendLine(b, "Content-Length", strconv.Itoa(len(w.body)))
	}
	b = append(b, "\r\n"...)
	return append(b, w.body...)
}

// appendLine appends a line of a header. A value cannot add lines of its own.
func appendLine(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	if strings.ContainsAny(value, "\r\n") {
		value = strings.NewReplacer("\r", " ", "\n", " ").Replace(value)
	}
	b = append(b, value...)
	return append(b, "\r\n"...)
}

// A stamp is the date of a second.
type stamp struct {
	second int64
	text   string
}

var newest atomic.Pointer[stamp]

// date returns the value of a Date header. It is formatted once a second.
func date() string {
	now := time.Now()
	s := newest.Load()
	if s == nil || s.second != now.Unix() {
		s = &stamp{now.Unix(), now.UTC().Format(http.TimeFormat)}
		newest.Store(s)
	}
	return s.text
}
