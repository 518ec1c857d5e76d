// Package apitest helps to test HTTP handlers: it sends requests that are written as
// text, and it is a client of event streams.
package apitest

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Ask sends a request and returns the response as text: the status, the shown headers
// and the body. The request is written as in HTTP, but without the version and with
// plain line ends.
func Ask(t testing.TB, h http.Handler, request []byte, shown ...string) []byte {
	t.Helper()
	head, body, _ := bytes.Cut(request, []byte("\n\n"))
	line, fields, _ := strings.Cut(string(head), "\n")
	raw := strings.TrimSpace(line) + " HTTP/1.1\r\nHost: x\r\n" + strings.ReplaceAll(strings.TrimSpace(fields), "\n", "\r\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.TrimSpace(raw) + "\r\n\r\n")))
	if err != nil {
		t.Fatalf("%v in\n%s", err, request)
	}
	r2 := httptest.NewRequest(r.Method, r.URL.String(), bytes.NewReader(body))
	r2.Header = r.Header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r2.WithContext(t.Context()))
	return text(w, shown)
}

func text(w *httptest.ResponseRecorder, shown []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %s\n", w.Code, http.StatusText(w.Code))
	for _, name := range shown {
		if v := w.Header().Get(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	if w.Body.Len() > 0 {
		fmt.Fprintf(&b, "\n%s", w.Body)
	}
	return b.Bytes()
}
