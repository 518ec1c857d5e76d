package narrate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestUnreached: the reason is what a person can act on, and no secret of the URL is in it.
func TestUnreached(t *testing.T) {
	const secrets = "ada:pa55word@"
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(t.Output(), "", 0)
	secure.StartTLS()
	defer secure.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	_ = l.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	at := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	for _, tt := range []struct {
		name, url, want string
		config          *tls.Config
	}{
		{"refused", "http://" + secrets + free, "the connection is refused, so nothing listens at its port", nil},
		{"no TLS", "https://" + secrets + at(plain), "it does not speak TLS at this port; maybe its URL begins with http://", nil},
		{"an unknown signer", "https://" + secrets + at(secure), "nobody whom this machine trusts has signed its certificate", nil},
		{"another name", "https://" + secrets + at(secure), "its certificate is for another name", &tls.Config{RootCAs: roots, ServerName: "other.test"}},
		{"expired", "https://" + secrets + at(secure), "its certificate is not valid at this time",
			&tls.Config{RootCAs: roots, Time: func() time.Time { return time.Unix(1<<36, 0) }}},
		{"an old version", "https://" + secrets + at(secure), "it refuses to speak TLS: ", &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}},
		{"no answer", "http://" + secrets + at(plain), "it ends the connection without an answer", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: tt.config, DisableKeepAlives: true}}
			resp, err := client.Get(tt.url + "/v1?key=t0psecret")
			if err == nil {
				resp.Body.Close()
				t.Fatal("it was reached")
			}
			if got := Unreached(fmt.Errorf("outer: %w", err), nil); !strings.HasPrefix(got, tt.want) || strings.Contains(got, "127.0.0.1") {
				t.Errorf("%q, want %q (%v)", got, tt.want, err)
			}
		})
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Err: "no such host", Name: "a.test", Server: "10.0.0.53", IsNotFound: true}, "there is no host of this name"},
		{&net.DNSError{Err: "server misbehaving", Name: "a.test", Server: "10.0.0.53", IsTemporary: true}, "its name cannot be looked up now"},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, "it does not answer in time"},
		{&net.OpError{Op: "proxyconnect", Err: &net.DNSError{IsNotFound: true}}, "its proxy does not answer: there is no host of this name"},
		{&url.Error{Op: "Get", URL: "http://x/?key=t0psecret", Err: &url.Error{Op: "Get", URL: "http://x/?key=t0psecret", Err: errors.New("odd\x1b[2J")}}, "odd[2J"},
	} {
		if got := Unreached(fmt.Errorf("outer: %w", tt.err), nil); !strings.HasSuffix(got, tt.want) || strings.Contains(got, "t0psecret") {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
