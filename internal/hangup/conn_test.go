package hangup

import (
	"context"
	"io"
	"net"
	"testing"
)

// TestIgnored: between Ignore and the next write, a read returns nothing.
func TestIgnored(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := newListener(l, Limit{}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(client, "next"); err != nil {
		t.Fatal(err)
	}
	Ignore(context.WithValue(t.Context(), connKey{}, c))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != nil {
		t.Fatalf("ignored: read %d, %v, want nothing", n, err)
	}
	if _, err := io.WriteString(c, "answer"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if n, err := c.Read(b); n != 1 || err != nil || b[0] != 'n' {
		t.Fatalf("answered: read %d, %q, %v, want what the client sent", n, b, err)
	}
	Ignore(t.Context()) // without a connection it does nothing
}
