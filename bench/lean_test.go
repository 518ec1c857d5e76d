package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestLeanPosterSendsWholeRequestsAndCountsAnswers(t *testing.T) {
	for name, status := range map[string]int{"accepted": http.StatusNoContent, "refused": http.StatusConflict} {
		t.Run(name, func(t *testing.T) {
			var wrong, served atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != "hello" || r.Method != http.MethodPost || r.URL.Path != "/here" || r.Header.Get("Content-Type") != octets {
					wrong.Add(1)
				}
				served.Add(1)
				w.WriteHeader(status)
			}))
			defer s.Close()
			r := request{"/here", []byte("hello")}
			lat, failed, err := postLean(s.URL, []request{r, r, r}, 50*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			good, bad := int64(len(lat)), failed
			if status >= 300 {
				good, bad = bad, good
			}
			if wrong.Load() != 0 || bad != 0 || good != served.Load() || good < 3 {
				t.Errorf("served %d, %d of them wrong; %d succeeded, %d failed", served.Load(), wrong.Load(), len(lat), failed)
			}
		})
	}
}

func TestLeanPosterFailsWhenTheServerGoes(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer s.Close()
	if _, _, err := postLean(s.URL, []request{{"/", nil}}, time.Second); err == nil {
		t.Error("no error")
	}
}
