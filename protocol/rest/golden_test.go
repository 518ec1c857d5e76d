package rest_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck/docs"
	"github.com/tapedeck/tapedeck/internal/apischema"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

var update = flag.Bool("update", false, "write what the door answers into the conversations")

// Each conversation begins with prose and goes on with requests and the
// responses to them. The clock stands still at the beginning of the year 2000,
// so that times can be compared.
func TestConversations(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no conversations")
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { converse(t, path) })
		})
	}
}

func converse(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	door, _ := newDoor(rest.Options{MaxBody: 300, MaxAppend: 1000, MaxImport: 1000, MaxEvents: 5})
	var out txtar.Archive
	out.Comment = a.Comment
	for _, f := range a.Files {
		if f.Name != "request" {
			continue
		}
		out.Files = append(out.Files, f, txtar.File{Name: "response", Data: ask(t, door, f.Data)})
	}
	got := txtar.Format(&out)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(txtar.Format(a)), string(got)); diff != "" {
		t.Errorf("%s(-want +got)\n%s", a.Comment, diff)
	}
}

// ask sends a request, written as it is in HTTP but for the version and for the
// line ends, and writes the response down.
func ask(t *testing.T, door http.Handler, request []byte) []byte {
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
	door.ServeHTTP(w, r2.WithContext(t.Context()))
	described(t, r2, body, w)
	return written(w)
}

var description = sync.OnceValues(func() (*apischema.Checker, error) { return apischema.NewChecker(docs.OpenAPI) })

// described checks that openapi.json describes a request that was accepted, and the
// answer.
func described(t *testing.T, r *http.Request, body []byte, w *httptest.ResponseRecorder) {
	t.Helper()
	c, err := description()
	if err != nil {
		t.Fatal(err)
	}
	path, ok := strings.CutPrefix(r.URL.Path, rest.Root)
	fake := strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") // a file of the engine of these tests
	if !ok || r.Method == http.MethodHead || fake {
		return
	}
	if w.Code < http.StatusBadRequest {
		if err := c.Request(r.Method, path, r.URL.Query(), r.Header.Get("Content-Type"), body); err != nil {
			t.Errorf("openapi.json: %s %s %s: %.300v", r.Method, r.URL, body, err)
		}
	}
	if err := c.Answer(r.Method, path, w.Code, w.Header().Get("Content-Type"), w.Body.Bytes()); err != nil {
		t.Errorf("openapi.json: the answer to %s %s, %s: %.300v", r.Method, r.URL, w.Body, err)
	}
}

// shown are the headers of a response that a conversation shows.
var shown = []string{
	"Content-Type", "Location", "Allow", "ETag", "Cache-Control", "Vary", "Retry-After",
	"Producer-Epoch", "Producer-Expected-Seq",
}

func written(w *httptest.ResponseRecorder) []byte {
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

// The requests in docs/http.md are answered as the docs say, one after the other.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	door, _ := newDoor(rest.Options{})
	examples := regexp.MustCompile("(?s)```http (\\d+)\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(examples) == 0 {
		t.Fatal("no examples")
	}
	for _, m := range examples {
		if got := ask(t, door, m[2]); !bytes.HasPrefix(got, m[1]) {
			t.Errorf("want %s for\n%s\ngot\n%s", m[1], m[2], got)
		}
	}
}
