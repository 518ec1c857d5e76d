package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/internal/sse"
)

func frames(t *testing.T, r io.Reader) ([]sse.Frame, error) {
	t.Helper()
	var out []sse.Frame
	for f, err := range sse.Read(r) {
		if err != nil {
			return out, err
		}
		out = append(out, f)
	}
	return out, nil
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []sse.Frame
	}{
		{"nothing", "", nil},
		{"one", "id: 7\ndata: {}\n\n", []sse.Frame{{ID: "7", Data: []byte("{}")}}},
		{"comments and retry are passed over", "retry: 1000\n\n: hi\n\ndata: x\n\n", []sse.Frame{{Data: []byte("x")}}},
		{"several lines of data", "event: e\ndata: a\ndata:\ndata:b\n\n", []sse.Frame{{Event: "e", Data: []byte("a\n\nb")}}},
		{"empty data is an event", "data:\n\n", []sse.Frame{{Data: []byte{}}}},
		{"an id without data is none", "id: 3\n\n", nil},
		{"one that is cut off will come again", "data: a\n\ndata: b\n", []sse.Frame{{Data: []byte("a")}}},
		{"CRLF", "data: a\r\n\r\n", []sse.Frame{{Data: []byte("a")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			} {
				got, err := frames(t, r)
				if err != nil || !cmp.Equal(got, c.want) {
					t.Errorf("%s: got %q, %v", name, got, err)
				}
			}
		})
	}
}

func TestReadReportsALostConnection(t *testing.T) {
	lost := errors.New("lost")
	got, err := frames(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(lost)))
	if !errors.Is(err, lost) || len(got) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzRead reads what AppendFrame writes, with any data.
func FuzzRead(f *testing.F) {
	f.Add("7", []byte(strings.Repeat("a long line ", 10_000)))
	f.Add("", []byte("a\nb\r\n\r"))
	f.Fuzz(func(t *testing.T, id string, data []byte) {
		if strings.ContainsAny(id, "\r\n\x00") {
			t.Skip("ids are ours")
		}
		got, err := frames(t, strings.NewReader(string(sse.AppendFrame(nil, id, "", data))))
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		if err != nil || len(got) != 1 || string(got[0].Data) != want || got[0].ID != id {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
