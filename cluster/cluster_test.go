package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/cluster"
)

var key = []byte("the key of these servers")

// A server is a node that listens.
type server struct {
	*cluster.Node
	*httptest.Server
	name string
}

func start(t *testing.T, name string, o cluster.Options) *server {
	t.Helper()
	n := cluster.New(o)
	n.UseKey(key)
	s := &server{n, httptest.NewServer(n), name}
	t.Cleanup(func() { n.Close(); s.CloseClientConnections(); s.Server.Close() })
	return s
}

// own makes s the owner, with a handler.
func (s *server) own(h http.HandlerFunc) {
	s.Own(cluster.Local{Handler: h, Name: s.name, Owns: func(context.Context) bool { return true }})
}

// follow makes s forward to another server.
func (s *server) follow(t *testing.T, o *server) {
	t.Helper()
	if err := s.Follow(cluster.Owner{Name: o.name, Address: o.URL}); err != nil {
		t.Fatal(err)
	}
}

// pair starts an owner with a handler, and a server that forwards to it.
func pair(t *testing.T, h http.HandlerFunc) (owner, other *server) {
	t.Helper()
	owner, other = start(t, "one", cluster.Options{}), start(t, "two", cluster.Options{})
	owner.own(h)
	other.follow(t, owner)
	return owner, other
}

func do(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, from)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// TestForwardedWhole: the owner sees the request of the client, with its method, path, query,
// host, headers, body and address, and the client the answer of the owner.
func TestForwardedWhole(t *testing.T) {
	var from string
	_, other := pair(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		from = r.RemoteAddr
		w.Header().Set("Stream-Next-Offset", "7")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, r.Method, " ", r.RequestURI, " ", r.Host, " ", r.Header.Get("Authorization"), " ", r.Header.Get("X-Forwarded-Proto"),
			" ", r.Header.Get("X-Forwarded-For"), " ", r.Header.Get("Origin"), " ", r.Header.Get("Tapedeck-Forwarded"), "|", string(b))
	})
	resp, got := do(t, http.MethodPost, other.URL+"/a%2Fb//c;x?q=1;2&e=%zz", "body", "Host", "deck.example", "Authorization", "Bearer t",
		"X-Forwarded-Proto", "https", "X-Forwarded-For", "9.9.9.9", "Origin", "https://app.example")
	want := "POST /a%2Fb//c;x?q=1;2&e=%zz deck.example Bearer t https 9.9.9.9 https://app.example |body"
	if got != want || resp.StatusCode != http.StatusCreated || resp.Header.Get("Stream-Next-Offset") != "7" {
		t.Errorf("got %d %q, want %q", resp.StatusCode, got, want)
	}
	if !strings.HasPrefix(from, "127.0.0.1:") || from == strings.TrimPrefix(other.URL, "http://") {
		t.Errorf("the address of the client is %s", from)
	}
}

// TestClientsCannotClaim: a request that says without a proof that a server has forwarded it
// is refused, by every server.
func TestClientsCannotClaim(t *testing.T) {
	var served atomic.Int64
	owner, other := pair(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	forged := start(t, "three", cluster.Options{})
	forged.UseKey([]byte("another key"))
	forged.follow(t, owner)
	for name, ask := range map[string]func() *http.Response{
		"the owner": func() *http.Response {
			r, _ := do(t, http.MethodGet, owner.URL+"/", "", "Tapedeck-Forwarded", "to=one&for=1.2.3.4%3A5&mac=00")
			return r
		},
		"another": func() *http.Response {
			r, _ := do(t, http.MethodGet, other.URL+"/", "", "Tapedeck-Forwarded", "%")
			return r
		},
		"twice": func() *http.Response {
			r, _ := do(t, http.MethodGet, owner.URL+"/", "", "Tapedeck-Forwarded", "to=one", "Tapedeck-Forwarded", "to=one")
			return r
		},
		"another key": func() *http.Response { r, _ := do(t, http.MethodGet, forged.URL+"/", ""); return r },
	} {
		if r := ask(); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s answers %d", name, r.StatusCode)
		}
	}
	if served.Load() != 0 {
		t.Error("a forged request was served")
	}
}

// TestOneHop: two servers that take each other for the owner send a request once, and the
// client learns that nothing was done.
func TestOneHop(t *testing.T) {
	one, two := start(t, "one", cluster.Options{Wait: 250 * time.Millisecond}), start(t, "two", cluster.Options{})
	one.follow(t, two)
	two.follow(t, one)
	resp, got := do(t, http.MethodPost, one.URL+"/", "body")
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(got, "nothing was done") {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
}

// TestWaitsForTheNextOwner: requests that come while nobody owns the database are answered
// by the next owner, wherever it is, with their bodies.
func TestWaitsForTheNextOwner(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, "got ", string(b))
	}
	for _, here := range []bool{true, false} {
		waiting := make(chan int, 100)
		s := start(t, "one", cluster.Options{Meter: meter{waits: waiting}})
		next := start(t, "next", cluster.Options{})
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				body := fmt.Sprint("body ", i)
				if _, got := do(t, http.MethodPost, s.URL+"/", body); got != "got "+body {
					t.Errorf("here: %t: %s", here, got)
				}
			})
		}
		for range 5 {
			<-waiting
		}
		if here {
			s.own(echo)
		} else {
			next.own(echo)
			s.follow(t, next)
		}
		all.Wait()
	}
}

type meter struct{ waits chan int }

func (meter) Forwarded(cluster.Outcome) {}
func (m meter) Waits(delta int) {
	if delta > 0 {
		m.waits <- delta
	}
}

// TestWaitingIsBounded: more requests than may wait are refused at once, the others when
// their time is over.
func TestWaitingIsBounded(t *testing.T) {
	waiting := make(chan int, 100)
	s := start(t, "one", cluster.Options{Waiting: 1, Wait: 300 * time.Millisecond, Meter: meter{waits: waiting}})
	first := make(chan string)
	go func() { _, got := do(t, http.MethodGet, s.URL+"/", ""); first <- got }()
	<-waiting
	if resp, got := do(t, http.MethodGet, s.URL+"/", ""); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(got, "too many requests wait") {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
	if got := <-first; !strings.Contains(got, "no server owns the database") {
		t.Errorf("got %s", got)
	}
}

// TestDeadOwner: an owner that has ended gets no request. They wait for the next one.
func TestDeadOwner(t *testing.T) {
	owner, other := pair(t, func(http.ResponseWriter, *http.Request) {})
	owner.Server.Close()
	next := start(t, "next", cluster.Options{})
	next.own(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, "next ", string(b))
	})
	answer := make(chan string)
	go func() { _, got := do(t, http.MethodPost, other.URL+"/", "body"); answer <- got }()
	other.follow(t, next)
	if got := <-answer; got != "next body" {
		t.Errorf("got %s", got)
	}
}

// TestBrokenConnection: the owner dies while it has a request. One that changes nothing is
// sent to the next owner; of another one the client learns that it is not certain.
func TestBrokenConnection(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		got, die := make(chan struct{}, 10), make(chan struct{})
		owner, other := pair(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			got <- struct{}{}
			<-die
		})
		next := start(t, "next", cluster.Options{})
		var again atomic.Int64
		next.own(func(w http.ResponseWriter, _ *http.Request) { again.Add(1); fmt.Fprint(w, "next") })
		body := ""
		if method == http.MethodPost {
			body = "body"
		}
		type answer struct {
			status int
			text   string
		}
		answers := make(chan answer)
		go func() {
			resp, text := do(t, method, other.URL+"/", body)
			answers <- answer{resp.StatusCode, text}
		}()
		<-got
		other.follow(t, next) // it does not wait for the old owner, which may be paused
		a := <-answers
		close(die)
		owner.CloseClientConnections()
		switch {
		case method == http.MethodGet && (a.text != "next" || again.Load() != 1):
			t.Errorf("%s: got %+v", method, a)
		case method != http.MethodGet && (a.status != http.StatusServiceUnavailable || !strings.Contains(a.text, "not certain") || again.Load() != 0):
			t.Errorf("%s: got %+v, and the next owner got %d", method, a, again.Load())
		}
	}
}

// TestNoLongerOwner: a server that has lost the database refuses what it gets from others
// before it reads the body, so that the next owner gets all of it.
func TestNoLongerOwner(t *testing.T) {
	owner, other := pair(t, func(http.ResponseWriter, *http.Request) { t.Error("it is not the owner") })
	next := start(t, "next", cluster.Options{})
	next.own(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	owner.follow(t, next)
	answer := make(chan string)
	go func() {
		_, got := do(t, http.MethodPost, other.URL+"/", strings.Repeat("x", 1<<20))
		answer <- got
	}()
	other.follow(t, next)
	if got := <-answer; got != fmt.Sprint(1<<20) {
		t.Errorf("got %s", got)
	}
}

// TestOwnsIsAsked: a server that has lost the database and does not know it yet waits, and
// then forwards.
func TestOwnsIsAsked(t *testing.T) {
	s, next := start(t, "one", cluster.Options{}), start(t, "next", cluster.Options{})
	next.own(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "next") })
	asked := make(chan struct{})
	s.Own(cluster.Local{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it answers from its memory") }), Name: "one",
		Owns: func(context.Context) bool { close(asked); return false },
	})
	go func() { <-asked; s.follow(t, next) }()
	if _, got := do(t, http.MethodGet, s.URL+"/", ""); got != "next" {
		t.Errorf("got %s", got)
	}
}

// TestYield: a server that stops answers reads, everything else waits for the next owner.
// Idle waits for what it still answers.
func TestYield(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s, next := start(t, "one", cluster.Options{}), start(t, "next", cluster.Options{})
	s.own(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			entered <- struct{}{}
			<-leave
		}
		fmt.Fprint(w, "one")
	})
	next.own(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "next") })
	answers := make(chan string, 2)
	post := func() { _, got := do(t, http.MethodPost, s.URL+"/", "body"); answers <- got }
	go post()
	<-entered
	s.Yield()
	if _, got := do(t, http.MethodGet, s.URL+"/", ""); got != "one" {
		t.Errorf("a read got %s", got)
	}
	go post()
	s.NoOwner()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Idle(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a request is answered, and Idle returns %v", err)
	}
	close(leave)
	if got := <-answers; got != "one" {
		t.Errorf("the first got %s", got)
	}
	if err := s.Idle(t.Context()); err != nil {
		t.Error(err)
	}
	s.follow(t, next)
	if got := <-answers; got != "next" {
		t.Errorf("the second got %s", got)
	}
}

// TestStreams: events reach the client at once, and the stream ends well when this server
// stops.
func TestStreams(t *testing.T) {
	more := make(chan string)
	_, other := pair(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case line := <-more:
				fmt.Fprint(w, line)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	go func() { more <- "data: 1\n\n" }()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, other.URL+"/", http.NoBody)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := 1; i < 4; i++ {
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("got %q (%v)", line, err)
		}
		_, _ = lines.ReadString('\n')
		more <- fmt.Sprintf("data: %d\n\n", i+1)
	}
	other.CutStreams()
	if _, err := io.ReadAll(lines); err != nil {
		t.Error("the stream does not end well:", err)
	}
}

// TestOpenBody: the owner answers while the body is still open, as for appends.
func TestOpenBody(t *testing.T) {
	_, other := pair(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprint(w, "got ", line)
			_ = http.NewResponseController(w).Flush()
		}
	})
	pr, pw := io.Pipe()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, other.URL+"/", pr)
	go fmt.Fprintln(pw, "1")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answers := bufio.NewReader(resp.Body)
	for i := 1; i < 4; i++ {
		if got, err := answers.ReadString('\n'); err != nil || got != fmt.Sprintf("got %d\n", i) {
			t.Fatalf("got %q (%v)", got, err)
		}
		go fmt.Fprintln(pw, i+1)
	}
	pw.Close()
}

// TestUpgrade: a connection that is upgraded passes bytes both ways, until the server stops.
func TestUpgrade(t *testing.T) {
	_, other := pair(t, func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(c, rw)
	})
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, other.URL+"/", http.NoBody)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	c := resp.Body.(io.ReadWriteCloser)
	defer c.Close()
	fmt.Fprint(c, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
		t.Fatalf("got %q (%v)", got, err)
	}
	other.CutStreams()
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Log("it ends with", err)
	}
}

// TestHealth: each server says whether a request is answered, and by whom.
func TestHealth(t *testing.T) {
	var down atomic.Bool
	owner, other := pair(t, func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, "of the owner")
	})
	check := func(s *server, status int, role cluster.Role) {
		t.Helper()
		resp, body := do(t, http.MethodGet, s.URL+"/readyz", "")
		if resp.StatusCode != status || resp.Header.Get("Tapedeck-Role") != string(role) {
			t.Errorf("got %d, %s (%s), want %d, %s", resp.StatusCode, resp.Header.Get("Tapedeck-Role"), body, status, role)
		}
	}
	check(owner, 200, cluster.Owns)
	check(other, 200, cluster.Forwards)
	down.Store(true)
	check(owner, 503, cluster.Owns)
	check(other, 503, cluster.Forwards)
	owner.Stop()
	check(owner, 503, cluster.Stops)
	alone := start(t, "alone", cluster.Options{Wait: time.Nanosecond, Instance: "srv_alone"})
	check(alone, 503, cluster.Waits)
	check(start(t, "patient", cluster.Options{}), 200, cluster.Waits)
	if resp, _ := do(t, http.MethodGet, alone.URL+"/healthz", ""); resp.StatusCode != 200 || resp.Header.Get("Tapedeck-Instance") != "srv_alone" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
}

// TestParseAddress refuses what is no address of a server.
func TestParseAddress(t *testing.T) {
	for address, valid := range map[string]bool{
		"http://10.0.0.1:4747": true, "https://deck.example/": true, "http://[::1]:1": true, "": false, "10.0.0.1:4747": false,
		"ftp://a": false, "http://": false, "http://a/path": false, "http://user@a": false, "http://a?q": false, "http://:4747": false,
	} {
		if _, err := cluster.ParseAddress(address); (err == nil) != valid {
			t.Errorf("%q: %v", address, err)
		}
	}
}
