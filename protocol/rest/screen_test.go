package rest_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/sse"
)

// A screen is a client of an event stream, without a network: so it can be in a
// bubble, where time passes only when everybody waits.
type screen struct {
	status int
	header http.Header
	cancel context.CancelFunc
	done   chan struct{} // closed when the door is finished with it

	mu     sync.Mutex
	got    bytes.Buffer
	frozen chan struct{} // while not nil, nothing is taken
}

// watch opens a stream. headers are names and values in turn.
func watch(t testing.TB, door http.Handler, target string, headers ...string) *screen {
	t.Helper()
	s := &screen{}
	s.open(t, door, target, headers...)
	return s
}

func (s *screen) open(t testing.TB, door http.Handler, target string, headers ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s.header, s.cancel, s.done = http.Header{}, cancel, make(chan struct{})
	r := httptest.NewRequest(http.MethodGet, "/api/v1/sessions/"+target, nil).WithContext(ctx)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	go func() {
		defer close(s.done)
		defer func() { // as net/http does
			p := recover()
			if err, _ := p.(error); p != nil && !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
		}()
		door.ServeHTTP(s, r)
	}()
}

// leave goes away, as a closed tab does, and waits until the door has noticed.
func (s *screen) leave() {
	s.cancel()
	<-s.done
}

func (s *screen) Header() http.Header              { return s.header }
func (s *screen) WriteHeader(status int)           { s.status = status }
func (s *screen) Flush()                           {}
func (s *screen) SetWriteDeadline(time.Time) error { return nil }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

// freeze takes nothing until the channel is closed.
func (s *screen) freeze() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = make(chan struct{})
	return s.frozen
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

// frames returns the whole frames that have come.
func (s *screen) frames(t testing.TB) []sse.Frame {
	t.Helper()
	var list []sse.Frame
	for f, err := range sse.Read(strings.NewReader(s.text())) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// offsets returns the ids of the events that have come.
func (s *screen) offsets(t testing.TB) []int64 {
	t.Helper()
	var list []int64
	for _, f := range s.frames(t) {
		if f.Event == "" {
			list = append(list, number(t, f.ID))
		}
	}
	return list
}

// lastID returns what a browser would send as Last-Event-ID.
func (s *screen) lastID(t testing.TB) string {
	t.Helper()
	id := ""
	for _, f := range s.frames(t) {
		if f.ID != "" {
			id = f.ID
		}
	}
	return id
}

// notes returns the frames with an event name, such as caught-up.
func (s *screen) notes(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, f := range s.frames(t) {
		if f.Event != "" {
			b.WriteString(f.ID + f.Event + string(f.Data) + " ")
		}
	}
	return strings.TrimSpace(b.String())
}

func number(t testing.TB, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// count returns the numbers from a up to and without b.
func count(a, b int64) []int64 {
	var list []int64
	for ; a < b; a++ {
		list = append(list, a)
	}
	return list
}
