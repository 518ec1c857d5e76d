package sse_test

import (
	"bufio"
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/sse"
)

func TestAppendFrame(t *testing.T) {
	for _, c := range []struct{ name, id, event, data, want string }{
		{"plain", "7", "", `{"a":1}`, "id: 7\ndata: {\"a\":1}\n\n"},
		{"named", "", "caught-up", "{}", "event: caught-up\ndata: {}\n\n"},
		{"empty data is still an event", "1", "", "", "id: 1\ndata: \n\n"},
		{"every kind of line end", "", "", "a\nb\r\nc\rd", "data: a\ndata: b\ndata: c\ndata: d\n\n"},
		{"a last line end is kept", "", "", "a\n", "data: a\ndata: \n\n"},
		{"no frame can be forged from data", "", "", "x\n\nevent: evil\ndata: y", "data: x\ndata: \ndata: event: evil\ndata: data: y\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(sse.AppendFrame(nil, c.id, c.event, []byte(c.data))); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWriterSendsHeadersBeforeAnyEvent(t *testing.T) {
	rec := httptest.NewRecorder()
	w, err := sse.Start(rec)
	if err != nil {
		t.Fatal(err)
	}
	if !rec.Flushed {
		t.Error("headers were not flushed; a client would wait for the first event")
	}
	for name, want := range map[string]string{
		"Content-Type":      "text/event-stream; charset=utf-8",
		"Cache-Control":     "no-cache, no-transform",
		"X-Accel-Buffering": "no",
	} {
		if got := rec.Header().Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if err := w.Heartbeat(); err != nil {
		t.Fatal(err)
	}
	if got, want := rec.Body.String(), ": heartbeat\n\n"; got != want {
		t.Errorf("heartbeat: got %q, want %q", got, want)
	}
}

// FuzzAppendFrame reads frames as the specification of EventSource says, and expects the
// data back with normalized line ends.
func FuzzAppendFrame(f *testing.F) {
	f.Add([]byte("a\r\n\r\rb\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		frame := sse.AppendFrame(nil, "", "", data)
		var lines []string
		sc := bufio.NewScanner(bytes.NewReader(frame))
		sc.Buffer(nil, 1<<20)
		blank := 0
		for sc.Scan() {
			if sc.Text() == "" {
				blank++
				continue
			}
			line, ok := strings.CutPrefix(sc.Text(), "data: ")
			if !ok || blank > 0 {
				t.Fatalf("%q: unexpected line %q", frame, sc.Text())
			}
			lines = append(lines, line)
		}
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		if got := strings.Join(lines, "\n"); got != want || blank != 1 {
			t.Errorf("got %q and %d blank lines, want %q and 1", got, blank, want)
		}
	})
}
