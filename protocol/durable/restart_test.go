package durable_test

import (
	"net/http"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/durable"
)

// TestRestart writes streams of every kind, closes the store, opens it again, and expects
// the same contents, the same answers to repetitions, and the same refusals.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	restart := func(use func(handler http.Handler)) {
		t.Helper()
		store := openFolder(t, dir)
		use(durable.New(options(store)))
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	producer := func(seq string) []string {
		return append([]string{"Producer-Id", "p", "Producer-Epoch", "1", "Producer-Seq", seq}, asJSON...)
	}
	fork := []string{"Stream-Forked-From", "/v1/stream/src", "Stream-Fork-Offset", offsetAt(1), "Stream-Fork-Sub-Offset", "2"}
	tags := map[string]string{}

	restart(func(handler http.Handler) {
		must(t, 201, handler, "PUT", "log", "[1,2]", "Content-Type", "application/json; charset=utf-8", "Stream-TTL", "3600")
		must(t, 200, handler, "POST", "log", "3", append(producer("0"), "Stream-Seq", "b")...)
		must(t, 201, handler, "PUT", "src", "one", asText...)
		must(t, 204, handler, "POST", "src", "two", asText...)
		must(t, 201, handler, "PUT", "fork", "", fork...)
		must(t, 204, handler, "POST", "fork", "!", asText...)
		must(t, 201, handler, "PUT", "fork-of-fork", "", "Stream-Forked-From", "/v1/stream/fork")
		must(t, 201, handler, "PUT", "done", "all", "Content-Type", "text/plain", "Stream-Closed", "true")
		must(t, 201, handler, "PUT", "sessions/ses", "")
		must(t, 204, handler, "POST", "sessions/ses", `{"type":"x","data":{"a":1}}`, asJSON...)
		must(t, 204, handler, "DELETE", "src", "")
		for _, path := range []string{"log", "fork", "fork-of-fork", "done", "sessions/ses"} {
			tags[path] = must(t, 200, handler, "GET", path, "").Header.Get("ETag")
		}
	})
	restart(func(handler http.Handler) {
		for path, want := range map[string]string{
			"log": "[1,2,3]", "fork": "onetw!", "fork-of-fork": "onetw!", "done": "all",
			"fork?offset=" + offsetAt(1): "tw!", "log?offset=" + offsetAt(2): "[3]",
		} {
			if got := textOf(t, must(t, 200, handler, "GET", path, "")); got != want {
				t.Errorf("%s: got %s, want %s", path, got, want)
			}
		}
		for path, tag := range tags {
			must(t, 304, handler, "GET", path, "", "If-None-Match", tag)
		}
		h := must(t, 200, handler, "HEAD", "log", "").Header
		if h.Get("Content-Type") != "application/json; charset=utf-8" || h.Get("Stream-TTL") != "3600" {
			t.Errorf("got %v", h)
		}
		must(t, 204, handler, "POST", "log", "3", producer("0")...)
		must(t, 409, handler, "POST", "log", "4", append(producer("1"), "Stream-Seq", "a")...)
		must(t, 409, handler, "POST", "log", "4", producer("2")...)
		must(t, 200, handler, "POST", "log", "4", producer("1")...)
		must(t, 200, handler, "PUT", "log", "", "Content-Type", "application/json", "Stream-TTL", "3600")
		must(t, 200, handler, "PUT", "fork", "", fork...)
		must(t, 409, handler, "PUT", "fork", "", fork[:4]...)
		must(t, 409, handler, "POST", "done", "more", asText...)
		must(t, 410, handler, "GET", "src", "")
		must(t, 409, handler, "PUT", "src", "", asText...)
		must(t, 200, handler, "PUT", "sessions/ses", "")
		must(t, 204, handler, "DELETE", "fork", "")
	})
	restart(func(handler http.Handler) {
		must(t, 410, handler, "GET", "fork", "")
		if got := textOf(t, must(t, 200, handler, "GET", "fork-of-fork", "")); got != "onetw!" {
			t.Errorf("got %s", got)
		}
		must(t, 204, handler, "DELETE", "fork-of-fork", "")
		must(t, 404, handler, "GET", "fork", "")
		must(t, 404, handler, "GET", "src", "")
		must(t, 201, handler, "PUT", "src", "anew", asText...)
	})
}
