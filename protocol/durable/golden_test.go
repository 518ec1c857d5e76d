package durable_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/store/memory"
)

// noon is the time of the conversations.
var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// TestConversations: the answers have no headers that every answer has.
func TestConversations(t *testing.T) {
	apitest.Conversations(t, func(t *testing.T, _ string, files []txtar.File) (out []txtar.File) {
		// In a bubble, time passes only when all goroutines wait: a long-poll that has
		// something to read always reads it in time.
		synctest.Test(t, func(t *testing.T) { out = converse(t, files) })
		return out
	})
}

func converse(t *testing.T, files []txtar.File) (out []txtar.File) {
	now := func() time.Time { return noon }
	store := memory.New(memory.Options{Now: now})
	o := options(store)
	o.Now = now
	subscribe(t, &o, store)
	o.LongPoll = time.Millisecond
	handler := durable.New(o)
	for _, f := range files {
		if f.Name != "request" {
			continue
		}
		time.Sleep(time.Second) // until the wakes of the request before are delivered
		out = append(out, f, txtar.File{Name: "response", Data: answer(t, handler, f.Data)})
	}
	return out
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
