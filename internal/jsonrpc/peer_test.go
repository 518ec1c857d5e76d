package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A wireTest is a Peer whose other side the test plays.
type wireTest struct {
	*Peer
	in  *io.PipeWriter // messages of the other side
	out *bufio.Scanner // messages to the other side
	end func()
}

func open(handle func(Message)) *wireTest {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &wireTest{Peer: New(inR, outW, handle), in: inW, out: bufio.NewScanner(outR)}
	w.end = func() {
		w.Close()
		inR.Close()
		outW.Close()
		w.Wait()
	}
	return w
}

func (w *wireTest) say(lines ...string) {
	for _, l := range lines {
		_, _ = io.WriteString(w.in, l+"\n")
	}
}

func ignore(Message) {}

func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []string
		w := open(func(m Message) { heard = append(heard, fmt.Sprintf("%s %s %s", m.ID, m.Method, m.Params)) })
		defer w.end()
		go func() {
			w.out.Scan()
			w.say(`{"jsonrpc":"2.0","method":"n","params":{"a":1}}`,
				`  `, `Warning: something`, `[]`, `{"jsonrpc":"1.0","method":"old"}`, `{"jsonrpc":"2.0","id":7}`,
				`{"jsonrpc":"2.0","id":"x","method":"r"}`,
				`{"jsonrpc":"2.0","id":99,"result":1}`,
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
				`{"jsonrpc":"2.0","id":1,"result":{"done":true}}`,
				`{"jsonrpc":"2.0","method":"after"}`)
		}()
		result, err := w.Call(t.Context(), "work", map[string]int{"n": 3})
		if err != nil || string(result) != `{"done":true}` {
			t.Fatalf("%s, %v", result, err)
		}
		if got := w.out.Text(); got != `{"jsonrpc":"2.0","id":1,"method":"work","params":{"n":3}}` {
			t.Errorf("it was asked %s", got)
		}
		synctest.Wait()
		want := ` n {"a":1}|  Warning: something|  []|  {"jsonrpc":"1.0","method":"old"}|  {"jsonrpc":"2.0","id":7}|"x" r | after `
		if got := strings.Join(heard, "|"); got != want {
			t.Errorf("heard\n%s, want\n%s", got, want)
		}
	})
}

// TestPressure checks that a busy handler holds the other side back: its messages stay
// in its pipe, and an answer does not overtake earlier messages.
func TestPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := make(chan struct{})
		handled := 0
		w := open(func(Message) { <-busy; handled++ })
		defer w.end()
		said := 0
		go func() {
			w.out.Scan()
			for range 50_000 {
				w.say(`{"jsonrpc":"2.0","method":"n"}`)
				said++
			}
			w.say(`{"jsonrpc":"2.0","id":1,"result":true}`)
		}()
		answered := make(chan int)
		go func() {
			_, err := w.Call(t.Context(), "work", nil)
			if err != nil {
				t.Error(err)
			}
			answered <- handled
		}()
		synctest.Wait()
		if said > 5000 { // as many as fit into the buffer of one read
			t.Errorf("%d notifications were read while the handler was busy", said)
		}
		close(busy)
		if n := <-answered; n != 50_000 {
			t.Errorf("the answer arrived after %d notifications", n)
		}
	})
}

func TestCallEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w *wireTest, cancel func())
		want string
	}{
		{"an error answer", func(w *wireTest, _ func()) {
			w.say(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found","data":{"m":1}}}`)
		}, "Method not found (code -32601)"},
		{"the caller cancels", func(_ *wireTest, cancel func()) { cancel() }, "context canceled"},
		{"the other side closes", func(w *wireTest, _ func()) { w.in.Close() }, "the connection is closed"},
		{"the other side closes in the middle of a line", func(w *wireTest, _ func()) {
			_, _ = io.WriteString(w.in, `{"jsonrpc":"2.0","id":1,"res`)
			w.in.Close()
		}, "the connection is closed"},
		{"the answer is the last message", func(w *wireTest, _ func()) {
			_, _ = io.WriteString(w.in, `{"jsonrpc":"2.0","id":1,"result":null}`)
			w.in.Close()
		}, ""},
		{"reading fails", func(w *wireTest, _ func()) { w.in.CloseWithError(errors.New("broken")) }, "broken"},
		{"the peer is closed", func(w *wireTest, _ func()) { w.Close() }, "the connection is closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := open(ignore)
				defer w.end()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { w.out.Scan(); tt.do(w, cancel) }()
				_, err := w.Call(ctx, "work", nil)
				if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
					t.Errorf("the error is %q, want %q", got, tt.want)
				}
				if len(w.calls) > 0 {
					t.Error("the ended call is still registered")
				}
			})
		})
	}
}

// TestDeafSide has a side that does not read its input.
func TestDeafSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(ignore)
		defer w.end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 3 { // the writer takes one
			_ = w.Notify(ctx, "n", nil)
		}
		if ctx.Err() == nil {
			t.Error("the call returned before its context was done")
		}
	})
}

func TestReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(ignore)
		defer w.end()
		go func() {
			_ = w.Reply(t.Context(), json.RawMessage(`"a"`), map[string]bool{"ok": true}, nil)
			_ = w.Reply(t.Context(), json.RawMessage(`2`), nil, &Error{Code: CodeMethodNotFound, Message: "no"})
			_ = w.Notify(t.Context(), "n", []int{1})
		}()
		for _, want := range []string{
			`{"jsonrpc":"2.0","id":"a","result":{"ok":true}}`,
			`{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}`,
			`{"jsonrpc":"2.0","method":"n","params":[1]}`,
		} {
			if w.out.Scan(); w.out.Text() != want {
				t.Errorf("got %s, want %s", w.out.Text(), want)
			}
		}
	})
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, tt := range []struct {
		name, in string
		max      int
		want     []string
		err      string
	}{
		{"plain", "a\n\n  b \r\nc", 0, []string{"a", "b", "c"}, "EOF"},
		{"long", long + "\na\n" + long, 0, []string{long, "a", long}, "EOF"},
		{"too long", "a\n" + long + "\n", 100 << 10, []string{"a"}, "the agent sent a line of more than 100 KiB, which is too long to record"},
		{"not UTF-8", "a\xffb\n", 0, []string{"a\uFFFDb"}, "EOF"},
		{"nothing", "", 0, nil, "EOF"},
		{"blank", " \n\n ", 0, nil, "EOF"},
	} {
		l := NewLines(strings.NewReader(tt.in), tt.max)
		var got []string
		for {
			line, err := l.Next()
			if err != nil {
				if err.Error() != tt.err {
					t.Errorf("%s: it ended with %v", tt.name, err)
				}
				break
			}
			got = append(got, string(line))
		}
		if strings.Join(got, "|") != strings.Join(tt.want, "|") {
			t.Errorf("%s: got %.80q, want %.80q", tt.name, got, tt.want)
		}
	}
}

func FuzzPeer(f *testing.F) {
	f.Add("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[]}\nhm\n")
	f.Add(`{"jsonrpc":"2.0","id":{},"method":"m","error":{"code":1e9}}`)
	f.Add("[[[[{\"jsonrpc\":\n\x00\xff")
	f.Fuzz(func(t *testing.T, in string) {
		handled := 0
		p := New(strings.NewReader(in), io.Discard, func(m Message) {
			handled++
			if m.Method == "" && len(m.Params) == 0 || m.ID != nil && !json.Valid(m.ID) {
				t.Errorf("an impossible message: %+v", m)
			}
		})
		<-p.Closed()
		p.Wait()
		if p.Err() != io.EOF || handled > strings.Count(in, "\n")+1 {
			t.Errorf("%v, %d messages", p.Err(), handled)
		}
	})
}
