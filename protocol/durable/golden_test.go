package durable_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/store/memory"
)

var update = flag.Bool("update", false, "write the answers into testdata")

// noon is the time of the conversations.
var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// TestConversations compares the answers with testdata. Each file has a description, then
// requests and the answers to them, without the headers that every answer has.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// In a bubble, time passes only when all goroutines wait: a long-poll that has
			// something to read always reads it in time.
			synctest.Test(t, func(t *testing.T) { converse(t, archive) })
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// converse sends the requests of an archive and compares, or with -update
// fills in, the answers.
func converse(t *testing.T, archive *txtar.Archive) {
	now := func() time.Time { return noon }
	store := memory.New(memory.Options{Now: now})
	o := options(store)
	o.Now = now
	subscribe(t, &o, store)
	o.LongPoll = time.Millisecond
	handler := durable.New(o)
	var files []txtar.File
	for i, f := range archive.Files {
		if f.Name != "request" {
			continue
		}
		time.Sleep(time.Second) // until the wakes of the request before are delivered
		got := answer(t, handler, f.Data)
		if *update {
			files = append(files, f, txtar.File{Name: "response", Data: got})
			continue
		}
		if i+1 == len(archive.Files) || archive.Files[i+1].Name != "response" {
			t.Fatalf("request %d has no response; run with -update", i)
		}
		if diff := cmp.Diff(string(archive.Files[i+1].Data), string(got)); diff != "" {
			t.Errorf("the answer to\n%s\nis not as recorded (-recorded +got):\n%s", f.Data, diff)
		}
	}
	if *update {
		archive.Files = files
	}
}

// answer sends a request and returns the answer as text.
func answer(t *testing.T, handler http.Handler, text []byte) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, parseRequest(t, text))
	resp := w.Result()
	var out bytes.Buffer
	fmt.Fprintln(&out, resp.StatusCode)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		if !slices.Contains(common, name) {
			for _, v := range resp.Header[name] {
				fmt.Fprintf(&out, "%s: %s\n", name, v)
			}
		}
	}
	body, _ := io.ReadAll(resp.Body)
	body = random.ReplaceAll(body, []byte(`"$1":"$2…"`))
	if len(body) > 0 {
		fmt.Fprintf(&out, "\n%s", body)
		if !bytes.HasSuffix(body, []byte("\n")) {
			fmt.Fprintln(&out)
		}
	}
	return out.Bytes()
}

// random matches the parts of an answer that are random, and begin with $2.
var random = regexp.MustCompile(`"(wake_id|token|kid|x)":"(w_|ds_|)[^"]+"`)

var common = []string{"X-Content-Type-Options", "Cross-Origin-Resource-Policy", "Content-Security-Policy"}

// parseRequest reads "METHOD /path", headers, and after an empty line the body, without
// its last end of line.
func parseRequest(t *testing.T, text []byte) *http.Request {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(text))
	line, _ := r.ReadString('\n')
	method, target, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok {
		t.Fatalf("%q is not a request line", line)
	}
	header, err := textproto.NewReader(r).ReadMIMEHeader()
	if err != nil && err != io.EOF {
		t.Fatalf("%s: %v", line, err)
	}
	body, _ := io.ReadAll(r)
	req := httptest.NewRequest(method, target, bytes.NewReader(bytes.TrimSuffix(body, []byte("\n"))))
	for name, values := range header {
		req.Header[name] = values
	}
	return req
}
