package durable_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck/protocol/durable"
)

// FuzzHostileRequests sends requests that no client would send. Every answer is a valid
// answer, and never an internal error.
func FuzzHostileRequests(f *testing.F) {
	f.Add("GET", "/a/../b", "offset=-1", "x", "1", "text/plain", []byte("a"))
	f.Add("GET", "/sessions/%00/views/agui", "offset=0000000000000000_9999999999999999&live=sse", "", "", "", []byte(nil))
	f.Add("POST", "/json", "", "p", "9007199254740993", "application/json", []byte("[1,[2],\"\\u0000\"]"))
	f.Add("POST", "/json", "", "", "", "application/json", []byte("\"\xff\""))
	f.Add("PUT", "/fork", "", "/v1/stream/json", "9999999999999999_0000000000000000", "", []byte("x"))
	f.Add("GET", "/json", "offset=9999999999999999_0000000000000000&limit=1;", "", "", "", []byte(nil))
	f.Add("HEAD", "/sessions/s/views/state", "", "", "", "", []byte(nil))
	f.Add("GET", "/sessions/s/views/messages", "type=a,b&thread=\xff&live=long-poll&offset=-1&cursor=99999999999999999999", "", "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, method, path, query, a, b, contentType string, body []byte) {
		handler := hostileDoor(t)
		r := &http.Request{
			Method: method, URL: &url.URL{Path: "/v1/stream" + path, RawQuery: query}, Host: "x",
			Header: http.Header{}, Body: http.NoBody, ContentLength: int64(len(body)),
		}
		r.Body = readCloser{bytes.NewReader(body)}
		for name, v := range map[string]string{
			"Content-Type": contentType, "Producer-Id": a, "Producer-Epoch": b, "Producer-Seq": b,
			"Stream-Forked-From": a, "Stream-Fork-Offset": b, "Stream-Fork-Sub-Offset": b,
			"Stream-Ttl": b, "Stream-Seq": a, "If-Match": b, "If-None-Match": a, "Last-Event-Id": b,
		} {
			if v != "" {
				r.Header[name] = []string{v}
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code < 200 || w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

func hostileDoor(t testing.TB) http.Handler {
	handler := newHandler(func(o *durable.Options) { o.LongPoll, o.SSEClose = 1, 1 })
	must(t, 201, handler, "PUT", "json", "[1,2]", asJSON...)
	must(t, 201, handler, "PUT", "bytes", "abc")
	must(t, 201, handler, "PUT", "sessions/s", "")
	return handler
}

// FuzzJSON posts a body and expects the result of encoding/json.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`1`, ` [ ] `, `[[]]`, `[1,"]",{"a":[1,2]},"\\"]`, `"\"["`, `[{"a":"}"},"\u005d"]`, "[1,\n2]", `{"a":1}{"b":2}`, `[1,]`, "[\"\xff\"]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "a", "", asJSON...)
		resp := ask(t, handler, "POST", "a", bytes.NewReader(body), asJSON...)
		want, ok := messagesOf(body)
		if ok != (resp.StatusCode == 204) {
			t.Fatalf("%q: got %d, want it taken: %v", body, resp.StatusCode, ok)
		}
		if !ok {
			return
		}
		text := textOf(t, must(t, 200, handler, "GET", "a", ""))
		if !json.Valid([]byte(text)) || strings.ContainsAny(text, "\n\r") {
			t.Fatalf("%q came back as %q", body, text)
		}
		if diff := cmp.Diff(any(want), numbers([]byte(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", body, diff)
		}
		live := watchOnce(t, handler, "a?offset=-1&live=sse")
		if data := decodeEvents(t, live, false); data != text {
			t.Errorf("by SSE came %q, not %q", data, text)
		}
	})
}

// messagesOf returns the messages of a body, and whether it must be accepted.
func messagesOf(body []byte) ([]any, bool) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	v := numbers(body)
	if list, ok := v.([]any); ok {
		return list, len(list) > 0
	}
	return []any{v}, true
}

// numbers decodes JSON and keeps its numbers as they are written.
func numbers(b []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	_ = d.Decode(&v)
	return v
}

// watchOnce closes a stream and returns everything that a live reader gets of it.
func watchOnce(t testing.TB, handler http.Handler, path string) string {
	t.Helper()
	name, _, _ := strings.Cut(path, "?")
	must(t, 204, handler, "POST", name, "", "Stream-Closed", "true")
	return textOf(t, must(t, 200, handler, "GET", path, ""))
}

// FuzzTextEvents appends text in two parts and reads it as an event stream: the result is
// the same text, with LF as every line end.
func FuzzTextEvents(f *testing.F) {
	f.Add([]byte("a\r"), []byte("\nb"))
	f.Add([]byte("\n\nevent: control\ndata: {}"), []byte("\r\r"))
	f.Add([]byte("The"), []byte(" quick\n  brown\r\n "))
	f.Add([]byte(" \r"), []byte("\n fox"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a) == 0 || len(b) == 0 {
			return
		}
		handler := newHandler(nil)
		must(t, 201, handler, "PUT", "a", string(a), asText...)
		must(t, 204, handler, "POST", "a", string(b), asText...)
		got := decodeEvents(t, watchOnce(t, handler, "a?offset=-1&live=sse"), false)
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(a) + string(b))
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// do is must for a property: every answer that is no error is accepted.
func do(t rapid.TB, handler http.Handler, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "/v1/stream/"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code >= 300 {
		t.Fatalf("%s %s %v: %d %s", method, path, headers, w.Code, w.Body)
	}
	return w.Result()
}

// TestForksHaveTheirPrefix forks streams of random records at random places, and forks of
// forks, and expects that each has its source up to there.
func TestForksHaveTheirPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		handler := newHandler(nil)
		path, ends := "s0", []int{0} // ends of the records in content
		content := ""
		do(t, handler, "PUT", path, "")
		for i := range rapid.IntRange(1, 4).Draw(t, "forks") {
			for range rapid.IntRange(1, 4).Draw(t, "appends") {
				body := rapid.StringN(1, 6, 6).Draw(t, "record")
				do(t, handler, "POST", path, body, "Content-Type", "application/octet-stream")
				content += body
				ends = append(ends, len(content))
			}
			n := rapid.IntRange(0, len(ends)-2).Draw(t, "record of the fork")
			k := rapid.IntRange(0, ends[n+1]-ends[n]).Draw(t, "byte of the fork")
			sub := rapid.IntRange(0, k).Draw(t, "sub-offset")
			source := path
			path = fmt.Sprint("s", i+1)
			do(t, handler, "PUT", path, "", "Stream-Forked-From", "/v1/stream/"+source,
				"Stream-Fork-Offset", fmt.Sprintf("%016d_%016d", n, k-sub), "Stream-Fork-Sub-Offset", fmt.Sprint(sub))
			content, ends = content[:ends[n]+k], ends[:n+1]
			if k > 0 {
				ends = append(ends, len(content))
			}
			resp := do(t, handler, "GET", path, "")
			var body bytes.Buffer
			_, _ = body.ReadFrom(resp.Body)
			want := fmt.Sprintf("%016d_%016d", len(ends)-1, 0)
			if got := resp.Header.Get("Stream-Next-Offset"); body.String() != content || got != fmt.Sprintf("%s_%d", want, i+2) {
				t.Fatalf("%s has %q and ends at %s, want %q and %s", path, body.String(), got, content, want)
			}
		}
	})
}
