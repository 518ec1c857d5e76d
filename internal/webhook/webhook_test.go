package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

func TestPublicAddresses(t *testing.T) {
	for _, a := range []string{"1.1.1.1", "93.184.216.34", "172.15.0.1", "172.32.0.1", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"} {
		if !isPublic(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
	}
	for _, a := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
		"100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0",
		"fec0::1", "ff02::1", "2001::1", "2001:db8::1", "2002:a00:1::", "2002:7f00:1::", "3fff::1", "100::1", "2606:4700::1%eth0",
	} {
		if isPublic(netip.MustParseAddr(a)) {
			t.Errorf("%s is public", a)
		}
	}
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func TestURLs(t *testing.T) {
	strict, loose := New(nil, nil), New(prefixes("127.0.0.0/8", "10.1.0.0/16", "fd00::/8"), nil)
	both := func(url string) {
		t.Helper()
		if strict.Check(url) != nil || loose.Check(url) != nil {
			t.Errorf("%s is refused: %v", url, strict.Check(url))
		}
	}
	neither := func(url string) {
		t.Helper()
		for _, s := range []*Client{strict, loose} {
			if tapedeck.KindOf(s.Check(url)) != tapedeck.Invalid {
				t.Errorf("%.100q is not refused", url)
			}
		}
	}
	onlyLoose := func(url string) {
		t.Helper()
		if strict.Check(url) == nil || loose.Check(url) != nil {
			t.Errorf("%s: %v, %v", url, strict.Check(url), loose.Check(url))
		}
	}
	for _, u := range []string{"https://hook.example", "https://hook.example:8443/a?b=c", "https://1.1.1.1/x", "https://[2606:4700::1111]/x", "https://1password.example", "https://hook.x0x7f", "HTTPS://Hook.Example/"} {
		both(u)
	}
	for _, u := range []string{
		"", "hook.example", "ftp://hook.example", "file:///etc/passwd", "gopher://hook.example", "https://", "https:///x", "https://user:pw@hook.example", "https://hook.example/#x",
		"https://10.0.0.1/x", "http://10.0.0.1/x", "https://169.254.169.254/latest", "https://192.168.0.1", "https://[::1]", "https://[fe80::1%25eth0]/", "https://[::ffff:10.0.0.1]/",
		"http://1.1.1.1/x", "https://0.0.0.0", "https://hook.example:0", "https://hook.example:99999", "https://hook.example:x", "https://ho ok", "https://ho\x00ok",
		"https://127.1", "https://2130706433", "https://0x7f000001/x", "https://0X7F.1", "https://0177.0.0.1", "https://hook.1.", "https://0x",
		"https://hook.example/\n", "https://höök.example", "https://" + strings.Repeat("a", 300), "https://hook.example/" + strings.Repeat("a", MaxURL),
	} {
		neither(u)
	}
	for _, u := range []string{
		"http://127.0.0.1:8080/x", "https://127.0.0.1/x", "http://localhost/x", "https://LOCALHOST./x", "http://a.localhost", "http://10.1.2.3", "http://[fd00::1]/x",
		"http://[::ffff:127.0.0.1]/", "http://worker.internal:8080/x",
	} {
		onlyLoose(u)
	}
}

// sendTo sends a webhook over the network.
func sendTo(t *testing.T, s *Client, url string) (string, error) {
	t.Helper()
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	answer, err := s.Post(ctx, url, http.Header{"X-Token": {"t"}}, []byte("{}"))
	return string(answer), err
}

// TestAddressAtTheConnection: what counts is the address of the connection, whatever the
// name was when the URL was given.
func TestAddressAtTheConnection(t *testing.T) {
	var requests atomic.Int32
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprint(w, "thanks")
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	for _, transport := range []http.RoundTripper{New(nil, nil).tls, New(nil, nil).plain} {
		if transport.(*http.Transport).Proxy != nil {
			t.Error("a proxy would connect to any address")
		}
	}
	port := plain.Listener.Addr().(*net.TCPAddr).Port
	for _, allow := range [][]netip.Prefix{nil, prefixes("10.0.0.0/8", "::/0")} {
		for _, url := range []string{
			plain.URL, secure.URL, fmt.Sprintf("http://localhost:%d", port), fmt.Sprintf("http://[::ffff:127.0.0.1]:%d", port),
			fmt.Sprintf("http://0.0.0.0:%d", port), strings.Replace(secure.URL, "127.0.0.1", "localhost", 1),
		} {
			if _, err := sendTo(t, New(allow, nil), url); err == nil {
				t.Errorf("%s was reached", url)
			}
		}
	}
	if _, err := sendTo(t, New(nil, nil), fmt.Sprintf("http://localhost:%d", port)); Reason(err) != errAddress.Error() {
		t.Errorf("the reason is %q", Reason(err))
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
	for _, url := range []string{plain.URL, fmt.Sprintf("http://localhost:%d", port)} {
		if answer, err := sendTo(t, New(prefixes("127.0.0.0/8"), nil), url); answer != "thanks" || err != nil {
			t.Errorf("%s: %q, %v", url, answer, err)
		}
	}
}

// TestPlainOnlyToAllowed: an allowed name that points to a public address gets no request
// without encryption.
func TestPlainOnlyToAllowed(t *testing.T) {
	s := New(prefixes("127.0.0.0/8"), nil)
	if _, err := sendTo(t, s, "http://1.1.1.1:80/"); !errors.Is(err, errAddress) {
		t.Errorf("got %v", err)
	}
}

// TestHostileReceivers: a receiver may redirect, answer anything, for ever, or not at all.
func TestHostileReceivers(t *testing.T) {
	reached := make(chan string, 10)
	stop := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/secret", func(http.ResponseWriter, *http.Request) { reached <- "the target of a redirect" })
	for _, code := range []int{301, 302, 303, 307, 308} {
		mux.HandleFunc(fmt.Sprint("/", code), func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/secret", code) })
	}
	mux.HandleFunc("/404", http.NotFound)
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 2*MaxAnswer)) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, "on and on")
		}
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 2*maxAnswerHeader))
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(stop)
	s := New(prefixes("127.0.0.0/8"), nil)
	for _, path := range []string{"/301", "/302", "/303", "/307", "/308", "/404", "/header"} {
		if _, err := sendTo(t, s, server.URL+path); err == nil {
			t.Errorf("%s is no failure", path)
		}
	}
	for _, path := range []string{"/large", "/endless"} {
		if answer, err := sendTo(t, s, server.URL+path); len(answer) != MaxAnswer+1 || err != nil {
			t.Errorf("of %s %d bytes were read, %v", path, len(answer), err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Post(ctx, server.URL+"/silent", http.Header{}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a receiver without an answer: %v", err)
	}
	if len(reached) > 0 {
		t.Errorf("a request reached %s", <-reached)
	}
}

// TestReasons: a reader learns why a webhook failed, and nothing of the network inside.
func TestReasons(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	_, err = sendTo(t, New(prefixes("127.0.0.0/8"), nil), url)
	if got := Reason(err); got != "no connection could be made" {
		t.Errorf("nobody listens: %q", got)
	}
	for err, want := range map[error]string{
		fmt.Errorf("x: %w", &net.DNSError{Err: "no such host", Name: "a", Server: "10.0.0.53"}): "its name could not be resolved",
		fmt.Errorf("x: %w", &statusError{500}):                                                  "it answered 500",
		errors.New("malformed HTTP status code \"secret\""):                                     "it did not answer as a web server does",
	} {
		if got := Reason(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
