package sse_test

import (
	"encoding/json"
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
		{"CR", "data: a\rdata: b\r\rdata: c\r\r", []sse.Frame{{Data: []byte("a\nb")}, {Data: []byte("c")}}},
		{"all ends", "data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\r", []sse.Frame{{Data: []byte("a\nb\nc")}, {Data: []byte("d")}}},
		{"a byte order mark", "\ufeffdata: a\n\ndata: \ufeffb\n\n\ufeffdata: c\n\n", []sse.Frame{{Data: []byte("a")}, {Data: []byte("\ufeffb")}}},
		{"part of a byte order mark", "\xef\xbbdata: a\n\ndata: b\n\n", []sse.Frame{{Data: []byte("b")}}},
		{"only a byte order mark", "\ufeff", nil},
		{"one space is taken", "data:  a\ndata:b\n\n", []sse.Frame{{Data: []byte(" a\nb")}}},
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

// TestCR: a frame that ends with CR is there before the byte after it has arrived.
func TestCR(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write([]byte("data: a\r\r")) // the pipe stays open
	}()
	for f, err := range sse.Read(r) {
		if err != nil || string(f.Data) != "a" {
			t.Errorf("got %q, %v", f.Data, err)
		}
		break
	}
}

func TestValues(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		whole func([]byte) bool
		want  []string
	}{
		"frames":                        {"data: a\n\n: hi\nid: 1\n\ndata: b\ndata: c\n\n", nil, []string{"a", "b\nc"}},
		"no end":                        {"data: a\n\ndata: b", nil, []string{"a", "b"}},
		"empty data":                    {"data:\n\ndata: a\n\ndata", nil, []string{"a"}},
		"no empty lines":                {"data: {}\ndata: [1,\ndata: 2]\ndata: 3\n", json.Valid, []string{"{}", "[1,\n2]", "3"}},
		"no empty lines, without whole": {"data: {}\ndata: 3\n", nil, []string{"{}\n3"}},
		"CR and a mark":                 {"\ufeffdata: {}\rdata: 3\r", json.Valid, []string{"{}", "3"}},
	} {
		for how, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in))} {
			var got []string
			for data, err := range sse.Values(r, 100, c.whole) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(data))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s, %s: %s", name, how, d)
			}
		}
	}
	for _, in := range []string{"data: " + strings.Repeat("x", 101), strings.Repeat("data: x\n", 60)} {
		for data, err := range sse.Values(strings.NewReader(in), 100, nil) {
			if !errors.Is(err, sse.ErrTooLarge) {
				t.Errorf("got %q, %v", data, err)
			}
		}
	}
}

// FuzzRead reads what AppendFrame writes, with any data and with any ends of lines.
func FuzzRead(f *testing.F) {
	f.Add("7", []byte(strings.Repeat("a long line ", 10_000)))
	f.Add("", []byte("a\nb\r\n\r"))
	f.Fuzz(func(t *testing.T, id string, data []byte) {
		if strings.ContainsAny(id, "\r\n\x00") {
			t.Skip("ids are ours")
		}
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		written := string(sse.AppendFrame(nil, id, "", data))
		for _, end := range []string{"\n", "\r", "\r\n"} {
			got, err := frames(t, strings.NewReader("\ufeff"+strings.ReplaceAll(written, "\n", end)))
			if err != nil || len(got) != 1 || string(got[0].Data) != want || got[0].ID != id {
				t.Errorf("lines that end with %q: got %q, %v", end, got, err)
			}
		}
	})
}
