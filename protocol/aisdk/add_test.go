package aisdk_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Pages that write into a chat at once are decided one after the other: one begins its run,
// and the others are told by which run the chat is busy. Messages without a run are all stored.
func TestPagesAtOnce(t *testing.T) {
	const pages = 4
	w := newWorld(t)
	for n := range 20 {
		begun, fresh, plain := fmt.Sprint("begun_", n), fmt.Sprint("fresh_", n), fmt.Sprint("plain_", n)
		if refused := w.atOnce(1, begun, ""); len(refused) > 0 {
			t.Fatal(refused)
		}
		for _, chat := range []string{begun, fresh} {
			refused := w.atOnce(pages, chat, `,"run":"run_N"`)
			if len(refused) != pages-1 {
				t.Fatalf("%s: %d of %d pages are refused: %q", chat, len(refused), pages, refused)
			}
			for _, text := range refused {
				if !strings.HasPrefix(text, "409 chat "+chat+" is busy with run_") {
					t.Fatalf("%s: a page is refused with %q", chat, text)
				}
			}
		}
		if refused := w.atOnce(pages, plain, ""); len(refused) > 0 {
			t.Fatalf("%s: messages are refused: %q", plain, refused)
		}
		if got := len(w.loaded(plain)); got != pages {
			t.Fatalf("%s: the chat has %d messages of %d", plain, got, pages)
		}
	}
}

// atOnce sends a message of each page at once, with more members of the body (N is the number of the page), and returns the refusals.
func (w *world) atOnce(pages int, chat, more string) (refused []string) {
	var all sync.WaitGroup
	answers := make([]*httptest.ResponseRecorder, pages)
	for i := range pages {
		body := strings.ReplaceAll(`{"messages":[{"id":"m_N","role":"user","parts":[{"type":"text","text":"Hi"}]}]`+more+"}", "N", strconv.Itoa(i))
		all.Go(func() { answers[i] = w.send("/aisdk/web/"+chat+"/messages", body) })
	}
	all.Wait()
	for _, a := range answers {
		if a.Code != http.StatusOK {
			refused = append(refused, fmt.Sprint(a.Code, " ", a.Body))
		}
	}
	return refused
}

func (w *world) send(path, body string) *httptest.ResponseRecorder {
	got := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(w.Context(), "POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w.Handler.ServeHTTP(got, r)
	return got
}
