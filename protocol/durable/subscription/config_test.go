package subscription

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
)

func TestInvalidRequests(t *testing.T) {
	bubble(t, func(w *world) {
		const hook = `"type":"webhook","webhook":{"url":"https://hook.example"}`
		paths := func(n int) string { return `["p` + strings.Join(numbers(n), `","p`) + `"]` }
		for body, code := range map[string]string{
			`{`: codeInvalid, `[]`: codeInvalid, `"x"`: codeInvalid, ``: codeInvalid, `{"type":1}`: codeInvalid, `null`: codeInvalid,
			`{` + hook + `}`:                    codeInvalid,
			`{` + hook + `,"pattern":""}`:       codeInvalid,
			`{` + hook + `,"pattern":"a//b"}`:   codeInvalid,
			`{` + hook + `,"pattern":"a/../b"}`: codeInvalid,
			`{` + hook + `,"pattern":"a**"}`:    codeInvalid,
			`{` + hook + `,"pattern":5}`:        codeInvalid,
			`{` + hook + `,"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`:                          codeInvalid,
			`{` + hook + `,"streams":["a",""]}`:                                                             codeInvalid,
			`{` + hook + `,"streams":[1]}`:                                                                  codeInvalid,
			`{` + hook + `,"streams":["__ds/x"]}`:                                                           codeInvalid,
			`{` + hook + `,"streams":["sessions"]}`:                                                         codeInvalid,
			`{` + hook + `,"streams":["sessions/a/views/agui"]}`:                                            codeInvalid,
			`{` + hook + `,"streams":` + paths(maxStreams+1) + `}`:                                          codeLimit,
			`{` + hook + `,"pattern":"*","lease_ttl_ms":999}`:                                               codeInvalid,
			`{` + hook + `,"pattern":"*","lease_ttl_ms":600001}`:                                            codeInvalid,
			`{` + hook + `,"pattern":"*","lease_ttl_ms":-9223372036854775808}`:                              codeInvalid,
			`{` + hook + `,"pattern":"*","lease_ttl_ms":9223372036854775807}`:                               codeInvalid,
			`{` + hook + `,"pattern":"*","lease_ttl_ms":1.5}`:                                               codeInvalid,
			`{` + hook + `,"pattern":"*","lease_ttl_ms":"1000"}`:                                            codeInvalid,
			`{` + hook + `,"pattern":"*","filter":"none"}`:                                                  codeInvalid,
			`{` + hook + `,"streams":["a"],"filter":"run-finished"}`:                                        codeInvalid,
			`{` + hook + `,"pattern":"*","wake_stream":"w"}`:                                                codeInvalid,
			`{` + hook + `,"pattern":"*","description":"` + strings.Repeat("a", maxDescription+1) + `"}`:    codeInvalid,
			`{` + hook + `,"pattern":"*","description":"a\u0000"}`:                                          codeInvalid,
			`{"type":"webhook","pattern":"*"}`:                                                              codeInvalid,
			`{"type":"webhook","pattern":"*","webhook":{"url":"http://10.0.0.1/hook"}}`:                     codeURL,
			`{"type":"webhook","pattern":"*","webhook":"x"}`:                                                codeInvalid,
			`{"type":"pull-wake","pattern":"*"}`:                                                            codeInvalid,
			`{"type":"pull-wake","pattern":"*","wake_stream":"sessions/a"}`:                                 codeInvalid,
			`{"type":"pull-wake","pattern":"*","wake_stream":"a/../b"}`:                                     codeInvalid,
			`{"type":"pull-wake","streams":["w"],"wake_stream":"w"}`:                                        codeInvalid,
			`{"type":"pull-wake","pattern":"*","wake_stream":"w","webhook":{"url":"https://hook.example"}}`: codeInvalid,
			`{"type":"x","pattern":"*"}`:                                                                    codeInvalid,
			`{"x":"` + strings.Repeat("x", maxBody) + `"}`:                                                  codeTooLarge,
		} {
			w.refused(code, "PUT", "/subscriptions/s", "", body)
		}
		for _, id := range []string{"", "-x", "a%20b", strings.Repeat("a", 129), "%00"} {
			code := codeInvalid
			w.refused(code, "PUT", "/subscriptions/"+id, "", `{`+hook+`,"pattern":"*"}`)
		}
		is(t, "subscriptions", len(w.d.all()), 0)
		w.hook("s", `"pattern":"*"`)
		w.refused(codeExists, "PUT", "/subscriptions/s", "", `{`+hook+`,"pattern":"*"}`)
		w.expect(200, "PUT", "/subscriptions/s", "", `{"type":"webhook","webhook":{"url":"https://hook.example/x"},"pattern":"/*/","lease_ttl_ms":30000,"new":1}`, nil)
		for _, call := range [][2]string{
			{"POST", "/subscriptions/s"}, {"PATCH", "/subscriptions/s"}, {"GET", "/subscriptions/s/streams"}, {"GET", "/subscriptions/s/streams/a"},
			{"GET", "/subscriptions/s/claim"}, {"PUT", "/subscriptions/s/callback"}, {"DELETE", "/subscriptions"}, {"POST", "/jwks.json"},
		} {
			w.refused(codeMethod, call[0], call[1], "", "")
		}
		for _, path := range []string{"/x", "/subscriptions/s/x", "/subscriptions/s/claim/x", "/jwks.json/x", "/subscriptions/none", "/"} {
			w.refused(codeNotFound, "GET", path, "", "")
		}
		w.refused(codeInvalid, "POST", "/subscriptions/s/claim", "", `{"worker":"w"}`)
		w.refused(codeInvalid, "POST", "/subscriptions/s/claim", "", `{}`)
		w.refused(codeInvalid, "POST", "/subscriptions/s/streams", "", `{}`)
		w.refused(codeInvalid, "POST", "/subscriptions/s/streams", "", `{"streams":["a//b"]}`)
		w.refused(codeNotFound, "POST", "/subscriptions/none/streams", "", `{"streams":["a"]}`)
		w.expect(204, "POST", "/subscriptions/s/streams", "", `{"streams":`+paths(maxStreams)+`}`, nil)
		w.refused(codeLimit, "POST", "/subscriptions/s/streams", "", `{"streams":["one-more"]}`)
		for _, host := range []string{"a b", "a/b", "u@h", "", "a\x00"} {
			r := httptest.NewRequest("GET", root+"/subscriptions/s", nil)
			r.Host = host
			rec := httptest.NewRecorder()
			w.d.ServeHTTP(rec, r)
			is(t, "with the host "+host, rec.Code, http.StatusBadRequest)
		}
	})
}

func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

func TestNumberOfSubscriptions(t *testing.T) {
	bubble(t, func(w *world) {
		for i := range maxSubscriptions {
			w.hook(fmt.Sprint("s", i), `"pattern":"*"`)
		}
		const body = `{"type":"webhook","webhook":{"url":"https://hook.example/x"},"pattern":"*"}`
		w.refused(codeLimit, "PUT", "/subscriptions/x", "", body)
		w.expect(200, "PUT", "/subscriptions/s0", "", body, nil)
		var list struct{ Subscriptions []described }
		w.get("/subscriptions", &list)
		is(t, "listed", len(list.Subscriptions), maxSubscriptions)
		w.expect(204, "DELETE", "/subscriptions/s0", "", "", nil)
		w.expect(201, "PUT", "/subscriptions/x", "", body, nil)
		w.stream("a", "1")
		is(t, "webhooks", len(w.taken()), maxSubscriptions)
	})
}

// TestUnused: without subscriptions nothing is done for a commit. With the first one,
// everything is noted from then on.
func TestUnused(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("a", "1")
		w.d.dirtyMu.Lock()
		is(t, "noted commits", len(w.d.dirty), 0)
		w.d.dirtyMu.Unlock()
		is(t, "active", w.d.active.Load(), false)
		commits := []tapedeck.Commit{{Session: tapedeck.Session{ID: "x", Gen: 9, Head: 1}, Records: make([]tapedeck.Record, 1)}}
		if n := testing.AllocsPerRun(100, func() { w.d.committed(commits) }); n != 0 {
			t.Errorf("a commit allocates %v times", n)
		}
		w.hook("s", `"pattern":"*"`)
		is(t, "active with one", w.d.active.Load(), true)
		w.expect(204, "DELETE", "/subscriptions/s", "", "", nil)
		is(t, "active after it was deleted", w.d.active.Load(), false)
	})
}

// TestCommitBeforeTheSubscription: a commit that the dispatcher looks at late is not new to
// a subscription that was created after it.
func TestCommitBeforeTheSubscription(t *testing.T) {
	bubble(t, func(w *world) {
		w.stream("a", "1", "2")
		w.hook("s", `"pattern":"*"`)
		entry, err := w.hub.Head(w.t.Context(), "stream/a")
		if err != nil {
			t.Fatal(err)
		}
		s := w.d.all()[0]
		s.mu.Lock()
		s.since = w.d.changesSoFar() + 1 // as if the next change had been noted before
		s.mu.Unlock()
		w.d.committed([]tapedeck.Commit{{Session: entry, Records: make([]tapedeck.Record, 1)}})
		is(t, "told", w.told(), "")
	})
}

// TestBeforeTheStart: requests wait until what is pending is known, and not for ever.
func TestBeforeTheStart(t *testing.T) {
	bubble(t, func(w *world) {
		w.d = New(Options{Log: w.hub, Store: w.store.Subscriptions()})
		began := time.Now()
		w.refused(codeUnavailable, "GET", "/subscriptions/s", "", "")
		is(t, "it waits", time.Since(began), 10*time.Second)
	})
}

// TestStartFails: a store that fails at the start is tried again.
func TestStartFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.hook("s", `"pattern":"*"`)
		w.stop()
		w.stream("a", "1")
		broken := &brokenStore{Store: w.store.Subscriptions(), fails: 3}
		w.d = New(Options{Log: w.hub, Store: broken, Transport: w})
		ended := make(chan struct{})
		ctx, cancel := contextOf(w.t)
		go func() { w.d.Run(ctx); close(ended) }()
		w.stop = func() { cancel(); <-ended }
		time.Sleep(time.Minute)
		is(t, "told", w.told(), "a 0-1")
	})
}

// TestPublicURL: the address of the server that receivers see can be set.
func TestPublicURL(t *testing.T) {
	for s, want := range map[string]string{"https://deck.example": "https://deck.example", "http://10.0.0.1:80/": "http://10.0.0.1:80"} {
		if got, err := PublicURL(s); got != want || err != nil {
			t.Errorf("%s: %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "deck.example", "ftp://deck.example", "https://deck.example/a", "https://u@deck.example", "https://deck.example?x", "https://a:b", "https://"} {
		if _, err := PublicURL(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
	bubble(t, func(w *world) {
		w.hook("before", `"pattern":"*"`)
		w.d.options.PublicURL = "https://deck.example"
		w.expect(200, "PUT", "/subscriptions/before", "", `{"type":"webhook","webhook":{"url":"https://hook.example/x"},"pattern":"*"}`, nil)
		is(t, "keys", w.subscription("before").Webhook.Signing.JWKS, "https://deck.example"+root+"/jwks.json")
		w.stream("a", "1")
		is(t, "callback", w.taken()[0].CallbackURL, "https://deck.example"+root+"/subscriptions/before/callback")
	})
}

// TestKeys: keys are created once, only their owner can read them, and the old one stays
// published for a day after a rotation.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, KeyFile)
		open := func() *keyring { return keysIn(dir, time.Now) }
		if len(open().all()) != 0 {
			t.Error("a key exists before it is needed")
		}
		first, err := open().active()
		if err != nil {
			t.Fatal(err)
		}
		again, _ := open().active()
		is(t, "the key of the next process", again.ID, first.ID)
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		ring := open()
		if err := ring.rotate(); err != nil {
			t.Fatal(err)
		}
		second, _ := ring.active()
		if second.ID == first.ID || len(open().all()) != 2 {
			t.Errorf("after the rotation: %s, %d keys", second.ID, len(open().all()))
		}
		time.Sleep(keptFor - time.Minute)
		if k, ok := open().find(first.ID); !ok || k.public() != first.public() {
			t.Error("the old key is not published")
		}
		if len(encodeKeys(open().all())) != 2 {
			t.Error("two keys must be published")
		}
		time.Sleep(2 * time.Minute)
		if _, ok := open().find(first.ID); ok {
			t.Error("the old key is published after a day")
		}
		if err := open().rotate(); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(file); strings.Contains(string(b), first.ID) {
			t.Error("the old key is still in the file")
		}
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		is(t, "files", len(left), 1)
		for _, damaged := range []string{"", "{", `[{"kid":"x","seed":"AA=="}]`} {
			if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := open().active(); tapedeck.KindOf(err) != tapedeck.Unavailable {
				t.Errorf("damaged as %q: %v", damaged, err)
			}
			if b, _ := os.ReadFile(file); string(b) != damaged {
				t.Error("a damaged file was replaced")
			}
		}
	})
}
