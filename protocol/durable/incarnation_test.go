package durable_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// A client that comes back to a stream or a session that was recreated is told so, whatever
// way it reads, and gets nothing of the other history.
func TestIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, path := range []string{"room", "sessions/s"} {
			handler := newHandler(nil)
			first := history(t, handler, path, "mine", 3)
			reads := []string{"", "&live=long-poll", "&live=sse", "&limit=1"}
			if strings.HasPrefix(path, "sessions/") {
				reads = append(reads, "&type=acme.note", "&channel=chunks&live=long-poll")
			}
			for _, read := range reads[:1] {
				must(t, 200, handler, "GET", path+"?offset="+first+read, "")
			}
			must(t, 204, handler, "DELETE", path, "")
			second := history(t, handler, path, "other", 9)
			if first[:33] == second[:33] || first[33:] == second[33:] {
				t.Fatalf("the offsets are %s and %s", first, second)
			}
			beyond := fmt.Sprintf("%016d_%016d%s", 50, 0, first[33:])
			for _, at := range []string{first, beyond} {
				for _, read := range reads {
					isReplaced(t, ask(t, handler, "GET", path+"?offset="+at+read, nil))
				}
				isReplaced(t, ask(t, handler, "GET", path+"?offset=-1&live=sse", nil, "Last-Event-ID", at))
			}
			if path == "sessions/s" {
				isReplaced(t, ask(t, handler, "GET", path+"/views/messages?offset="+first, nil))
			}
			if got := textOf(t, must(t, 200, handler, "GET", path+"?offset="+first[:33], "")); !strings.Contains(got, "other") {
				t.Errorf("an offset alone is not read: %s", got)
			}
			must(t, 200, handler, "GET", path+"?offset="+second, "")
		}
	})
}

// history creates a stream with n messages and returns the offset after them.
func history(t testing.TB, handler http.Handler, path, text string, n int) string {
	t.Helper()
	must(t, 201, handler, "PUT", path, "", asJSON...)
	var resp *http.Response
	for range n {
		resp = must(t, 204, handler, "POST", path, `{"type":"acme.note","data":{"text":"`+text+`"}}`, asJSON...)
	}
	offset := resp.Header.Get("Stream-Next-Offset")
	if tail := must(t, 200, handler, "HEAD", path, "").Header.Get("Stream-Next-Offset"); tail != offset || len(offset) < 35 {
		t.Fatalf("the append says %q, HEAD %q", offset, tail)
	}
	return offset
}

func isReplaced(t testing.TB, resp *http.Response) {
	t.Helper()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusGone || !strings.Contains(string(b), `"kind":"replaced"`) || !strings.Contains(string(b), `"hint"`) || strings.Contains(string(b), "other\"") {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}

// An append that expects an offset of another history is refused, and says where the stream
// is now.
func TestIncarnationOfAppends(t *testing.T) {
	for _, path := range []string{"room", "sessions/s"} {
		handler := newHandler(nil)
		first := history(t, handler, path, "mine", 2)
		note := `{"type":"acme.note"}`
		must(t, 204, handler, "POST", path, note, append(asJSON, "If-Match", `"`+first+`"`)...)
		must(t, 204, handler, "DELETE", path, "")
		second := history(t, handler, path, "other", 2)
		resp := must(t, 412, handler, "POST", path, note, append(asJSON, "If-Match", first)...)
		if got := resp.Header.Get("Stream-Next-Offset"); got != second {
			t.Errorf("the stream is at %s, the answer says %s", second, got)
		}
		resp = must(t, 412, handler, "POST", path, note, append(asJSON, "If-Match", `"1"`)...)
		if got := resp.Header.Get("Stream-Next-Offset"); got != second {
			t.Errorf("the stream is at %s, the answer says %s", second, got)
		}
		producer := append(asJSON, "Producer-Id", "p", "Producer-Epoch", "0", "Producer-Seq", "0")
		once := must(t, 200, handler, "POST", path, note, producer...).Header.Get("Stream-Next-Offset")
		if again := must(t, 204, handler, "POST", path, note, producer...).Header.Get("Stream-Next-Offset"); again != once {
			t.Errorf("a repetition says %s, the append %s", again, once)
		}
		isReplaced(t, ask(t, handler, "PUT", path+"-fork", nil, "Stream-Forked-From", "/v1/stream/"+path, "Stream-Fork-Offset", first))
	}
}

// Below its beginning a fork has the offsets of its source, and of the sources of that.
func TestIncarnationOfForks(t *testing.T) {
	handler := newHandler(nil)
	at := history(t, handler, "a", "mine", 3)
	must(t, 201, handler, "PUT", "b", "", "Stream-Forked-From", "/v1/stream/a", "Stream-Fork-Offset", at)
	must(t, 201, handler, "PUT", "c", "", "Stream-Forked-From", "/v1/stream/b")
	for _, path := range []string{"b", "c"} {
		must(t, 204, handler, "POST", path, `{"other":1}`, asJSON...)
		if got := textOf(t, must(t, 200, handler, "GET", path+"?offset="+at, "")); got != `[{"other":1}]` {
			t.Errorf("%s has %s", path, got)
		}
	}
	must(t, 204, handler, "POST", "a", `{}`, asJSON...)
	beyond := must(t, 200, handler, "HEAD", "a", "").Header.Get("Stream-Next-Offset")
	for _, path := range []string{"b", "c"} {
		isReplaced(t, ask(t, handler, "GET", path+"?offset="+beyond, nil))
	}
}

// Only the forms that the server writes are offsets.
func TestPlaces(t *testing.T) {
	handler := newHandler(nil)
	at := history(t, handler, "a", "mine", 1)
	for _, wrong := range []string{at[:33] + "_", at[:33] + "_0", at[:33] + "_01", at[:33] + ".1", at + "_1", at[:33] + "_-1", at[:33] + "_99999999999999999999"} {
		must(t, 400, handler, "GET", "a?offset="+wrong, "")
	}
}
