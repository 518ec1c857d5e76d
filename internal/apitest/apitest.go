// Package apitest helps to test HTTP handlers: it sends requests that are written as
// text, and it is a client of event streams.
package apitest

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Ask sends a request and returns the response as text: the status, the shown headers
// and the body. See [Request] for its form.
func Ask(t testing.TB, h http.Handler, request []byte, shown ...string) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, Request(t, request))
	return text(w, shown)
}

// Request reads a request that is written as in HTTP, but without the version and with
// plain line ends.
func Request(t testing.TB, request []byte) *http.Request {
	t.Helper()
	head, body, _ := bytes.Cut(request, []byte("\n\n"))
	line, fields, _ := strings.Cut(string(head), "\n")
	raw := strings.TrimSpace(line) + " HTTP/1.1\r\nHost: x\r\n" + strings.ReplaceAll(strings.TrimSpace(fields), "\n", "\r\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.TrimSpace(raw) + "\r\n\r\n")))
	if err != nil {
		t.Fatalf("%v in\n%s", err, request)
	}
	r2 := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), bytes.NewReader(body))
	r2.Header = r.Header
	return r2.WithContext(t.Context())
}

// An Example is a request in a page of the documentation, and the status that the page
// promises.
type Example struct {
	Status  int
	Request []byte
}

// Examples returns the requests of a page, which are in blocks such as "```http 200". The
// page must have at least so many.
func Examples(t testing.TB, page string, least int) (list []Example) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range exampleBlock.FindAllSubmatch(text, -1) {
		status, _ := strconv.Atoi(string(b[1])) // it has digits only
		list = append(list, Example{status, b[2]})
	}
	if len(list) < least {
		t.Fatalf("%s has only %d requests", page, len(list))
	}
	return list
}

var exampleBlock = regexp.MustCompile("(?s)```http (\\d+)\n(.*?)```")

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
