package shortcut

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func anyRequest(string, string) bool { return true }

func onlyPosts(method, path string) bool { return method == "POST" && strings.HasPrefix(path, "/a") }

const plain = "POST /a/b-1_2.x HTTP/1.1\r\nHost: localhost:4747\r\nContent-Type: text/plain\r\nX-Two: 1\r\nx-two:2 \r\nContent-Length: 5\r\n\r\nhello"

// sameAsLibrary compares what parse took with what net/http makes of it.
func sameAsLibrary(t *testing.T, b []byte, r *http.Request, size int) {
	t.Helper()
	in := bytes.NewReader(b)
	buffered := bufio.NewReader(in)
	want, err := http.ReadRequest(buffered)
	if err != nil {
		t.Fatalf("%q is taken; net/http says %v", b, err)
	}
	wantBody, err := io.ReadAll(want.Body)
	if err != nil {
		t.Fatalf("the body of %q is taken; net/http says %v", b, err)
	}
	body, _ := io.ReadAll(r.Body)
	type facts struct {
		Method, Path, RawPath, Query, Host, URI, Proto, Body string
		Header                                               http.Header
		Length                                               int64
		Size                                                 int
	}
	of := func(r *http.Request, body []byte, size int) facts {
		return facts{r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.Host, r.RequestURI, r.Proto, string(body), r.Header, r.ContentLength, size}
	}
	if d := cmp.Diff(of(want, wantBody, len(b)-in.Len()-buffered.Buffered()), of(r, body, size)); d != "" {
		t.Errorf("%q (-net/http +shortcut)\n%s", b, d)
	}
}

func TestWhatIsTakenIsWhatTheLibraryReads(t *testing.T) {
	for _, request := range []string{
		plain,
		plain + "POST /next",
		"PUT /a HTTP/1.1\r\nHost: [::1]:1\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n",
		"POST /a/../b/./c//d HTTP/1.1\r\nhost: x\r\nCONTENT-LENGTH: 1\r\nempty:\r\n\r\n\n",
	} {
		r, size := parse([]byte(request), anyRequest)
		if size <= 0 {
			t.Errorf("%q is not taken: %d", request, size)
			continue
		}
		sameAsLibrary(t, []byte(request), r, size)
	}
}

func TestWhatIsUnusualIsNotTaken(t *testing.T) {
	head := func(lines ...string) string {
		return "POST /a HTTP/1.1\r\nHost: x\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	for _, request := range []string{
		"GET /a HTTP/1.1\r\n", "POST /b HTTP/1.1\r\n", // what is not asked for, before the head is whole
		"POST /a HTTP/1.0\r\n\r\n", "POST  /a HTTP/1.1\r\n\r\n", "POST /a  HTTP/1.1\r\n\r\n", "POST //a HTTP/1.1\r\n\r\n",
		"POST http://x/a HTTP/1.1\r\n\r\n", "POST /a?b HTTP/1.1\r\n\r\n", "POST /a%2fb HTTP/1.1\r\n\r\n", "POST /a;b HTTP/1.1\r\n\r\n",
		"POST /a\x00 HTTP/1.1\r\n\r\n", "post /a HTTP/1.1\r\n\r\n", " POST /a HTTP/1.1\r\n\r\n", "\r\nPOST /a HTTP/1.1\r\n\r\n",
		"POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n", // no host
		"POST /a HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n",
		"POST /a HTTP/1.1\r\nHost: a/b\r\nContent-Length: 0\r\n\r\n",
		head(), // no length
		head("Content-Length: 0", "Host: x"),
		head("Content-Length: 0", "Content-Length: 0"),
		head("Content-Length: +1"), head("Content-Length: 0x1"), head("Content-Length: 1, 1"), head("Content-Length: "), head("Content-Length: 99999999"),
		head("Content-Length : 0"), head("Content-Length: 0", " folded"), head("Content-Length: 0", "\tfolded"),
		head("Content-Length: 0", "no colon"), head("Content-Length: 0", ": no name"), head("Content-Length: 0", "a b: c"),
		head("Content-Length: 0", "X: a\rb"), head("Content-Length: 0", "X: a\nY: b"), head("Content-Length: 0", "X: \x7f"), head("Content-Length: 0", "X: é"),
		head("Content-Length: 0", "Connection: close"), head("Content-Length: 0", "Connection: upgrade"),
		head("Content-Length: 0", "Expect: 100-continue"), head("Content-Length: 0", "Transfer-Encoding: chunked"),
		head("Content-Length: 0", "transfer-encoding: identity"), head("Content-Length: 0", "Upgrade: h2c"), head("Content-Length: 0", "Trailer: X"),
	} {
		if r, size := parse([]byte(request), onlyPosts); size != notTaken {
			t.Errorf("%q: %d, %+v", request, size, r)
		}
	}
}

func TestWhatIsNotWholeIsWaitedFor(t *testing.T) {
	for n := range len(plain) {
		if r, size := parse([]byte(plain[:n]), onlyPosts); size != notWhole {
			t.Errorf("%q: %d, %+v", plain[:n], size, r)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(plain))
	f.Add([]byte("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nPragma: no-cache\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, size := parse(b, anyRequest); size > 0 {
			sameAsLibrary(t, b, r, size)
		}
	})
}
