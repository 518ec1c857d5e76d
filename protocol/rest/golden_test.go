package rest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck/docs"
	"github.com/tapedeck/tapedeck/internal/apischema"
	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/protocol/task"
)

// Each conversation begins with prose. Requests follow, each with the
// response to it. The clock stands still at the beginning of the year 2000,
// so that times can be compared.
func TestConversations(t *testing.T) {
	apitest.Conversations(t, func(t *testing.T, _ string, files []txtar.File) (out []txtar.File) {
		synctest.Test(t, func(t *testing.T) { out = converse(t, files) })
		return out
	})
}

func converse(t *testing.T, files []txtar.File) (out []txtar.File) {
	handler, _ := newHandler(rest.Options{MaxBody: 300, MaxAppend: 1000, MaxImport: 1000, MaxEvents: 5})
	for _, f := range files {
		if f.Name != "request" {
			continue
		}
		out = append(out, f, txtar.File{Name: "response", Data: ask(t, handler, f.Data)})
	}
	return out
}

// ask sends a request and returns the response, see [apitest.Ask].
func ask(t *testing.T, handler http.Handler, request []byte) []byte {
	t.Helper()
	return apitest.Ask(t, described(t, handler), request, shown...)
}

var description = sync.OnceValues(func() (*apischema.Checker, error) { return apischema.NewChecker(docs.OpenAPI) })

// described returns a handler that checks that openapi.json describes each request that
// h accepts, and each answer.
func described(t *testing.T, h http.Handler) http.Handler {
	c, err := description()
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(to, r)
		w := to.(*httptest.ResponseRecorder)
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
	})
}

// shown are the headers of a response that a conversation shows.
var shown = []string{
	"Content-Type", "Location", "Allow", "ETag", "Cache-Control", "Vary", "Retry-After",
	"Producer-Epoch", "Producer-Expected-Seq",
}

// The requests in docs/http.md are answered as the docs say, one after the other.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, g := newHandler(rest.Options{})
	views := projection.New(projection.Options{Store: g.Hub})
	handler := g.handler(rest.Options{Task: task.New(task.Options{Sessions: g.Hub, Views: views})})
	examples := regexp.MustCompile("(?s)```http (\\d+)\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(examples) == 0 {
		t.Fatal("no examples")
	}
	for _, m := range examples {
		if got := ask(t, handler, m[2]); !bytes.HasPrefix(got, m[1]) {
			t.Errorf("want %s for\n%s\ngot\n%s", m[1], m[2], got)
		}
	}
}
