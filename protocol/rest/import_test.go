package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/rest"
)

// TestImportFindsTheFormat: an import without a format finds the format, as the command
// does.
func TestImportFindsTheFormat(t *testing.T) {
	handler, _ := newHandler(rest.Options{})
	for query, want := range map[string]string{"": `no format "auto"`, "?format=auto": `no format "auto"`, "?format=": `no format ""`} {
		if status, e := send(t, handler, "POST", "/import"+query, "text/plain", strings.NewReader("x")); status != 400 || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %d %s", query, status, e.Message)
		}
	}
}

// TestLimitIsOneSentence: every wrong limit gets the same sentence.
func TestLimitIsOneSentence(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	for _, limit := range []string{"x", "0", "1001", "", "-1", "1.5"} {
		status, e := send(t, handler, "GET", "/sessions?limit="+limit, "", nil)
		if want := fmt.Sprintf("the parameter limit must be a whole number from 1 to 1000, not %q", limit); status != 400 || e.Message != want {
			t.Errorf("%d %s", status, e.Message)
		}
	}
}

// TestUndoWithoutAMarker: an undo without a marker undoes the newest. TestHostileBodies has
// an empty marker.
func TestUndoWithoutAMarker(t *testing.T) {
	for _, body := range []string{`{}`, `{"marker":null}`} {
		handler, g := newHandler(rest.Options{})
		g.session(t, "s", 2)
		for _, request := range [][2]string{{"rewind", `{"to_offset":1}`}, {"undo", body}} {
			if status, e := send(t, handler, "POST", "/sessions/s/"+request[0], asJSON, strings.NewReader(request[1])); status != 200 {
				t.Errorf("%s %s: %d %s", request[0], request[1], status, e.Message)
			}
		}
	}
}

// TestImportIsHeardAfterTheBody: a browser sends the whole file before it reads the
// answer. If the connection is closed before that, it does not see the error.
func TestImportIsHeardAfterTheBody(t *testing.T) {
	handler, _ := newHandler(rest.Options{})
	server := httptest.NewServer(handler)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const size = 32 << 20
	fmt.Fprintf(conn, "POST /api/v1/import?format=cards HTTP/1.1\r\nHost: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", conn.RemoteAddr(), size)
	if n, err := io.Copy(conn, strings.NewReader(strings.Repeat("x", size))); err != nil {
		t.Fatalf("after %d bytes: %v", n, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 || !strings.Contains(string(body), "cards") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
