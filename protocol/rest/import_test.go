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

// TestImportIsHeardAfterTheBody: browsers send all of a file before they listen.
// A connection that is closed before that tells them nothing.
func TestImportIsHeardAfterTheBody(t *testing.T) {
	door, _ := newDoor(rest.Options{})
	server := httptest.NewServer(door)
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
