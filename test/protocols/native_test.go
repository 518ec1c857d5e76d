package protocols

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// errEnded is the error of a stream that never ends by itself.
var errEnded = errors.New("the stream has ended")

// A tape is what a reader of envelopes has: every event, each exactly once.
type tape []tapedeck.Event

func (l *tape) next() int64 { return int64(len(*l)) }

// add adds the next event.
func (l *tape) add(r *reader, envelope []byte) error {
	var e tapedeck.Event
	if err := json.Unmarshal(envelope, &e); err != nil {
		return err
	}
	if e.Offset != l.next() {
		return fmt.Errorf("the event at offset %d came, not the one at %d", e.Offset, l.next())
	}
	*l = append(*l, e)
	var err error
	r.change(func() { err = l.show(r, &e) })
	return err
}

func (l *tape) show(r *reader, e *tapedeck.Event) error {
	if _, ok := e.Jump(); !ok {
		return applyTo(&r.conversation, e)
	}
	r.reset()
	for _, e := range active(*l) {
		if err := applyTo(&r.conversation, &e); err != nil {
			return err
		}
	}
	return nil
}

// active returns the events that no jump has reverted. Each jump here concerns all threads.
func active(log []tapedeck.Event) (out []tapedeck.Event) {
	for i := range log {
		if j, ok := log[i].Jump(); ok {
			out = active(log[:j.To])
			continue
		}
		out = append(out, log[i])
	}
	return out
}

func applyTo(c *conversation, e *tapedeck.Event) error {
	if e.ThreadName() != thread {
		return nil
	}
	return c.apply(e.Type, e.Data)
}

// nativeStream follows the stream of the HTTP API, and continues with Last-Event-ID.
func nativeStream() *reader {
	var l tape
	last := ""
	return &reader{name: "Server-Sent Events", follow: func(ctx context.Context, r *reader, url string) error {
		req := request(ctx, http.MethodGet, url+"/api/v1/sessions/"+session+"/stream", "", "Last-Event-ID", last)
		_, err := r.stream(req, func(f sse.Frame) error {
			if f.ID != "" {
				last = f.ID
			}
			if f.Event != "" {
				return nil
			}
			return l.add(r, f.Data)
		})
		return cmpErr(err)
	}}
}

// cmpErr returns err, or the error of a stream that has ended without one.
func cmpErr(err error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// nativeSocket follows with tapedeck.v1, and continues from its cursor.
func nativeSocket() *reader {
	var l tape
	return &reader{name: "tapedeck.v1", follow: func(ctx context.Context, r *reader, url string) error {
		c, err := dial(ctx, url+"/api/v1/ws", "tapedeck.v1")
		if err != nil {
			return err
		}
		defer c.CloseNow()
		if err := c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"follow","session":%q,"from":%d}`, session, l.next())); err != nil {
			return err
		}
		for {
			_, b, err := c.Read(ctx)
			if err != nil {
				return err
			}
			for line := range bytes.Lines(b) {
				var f struct {
					Type  string
					Event json.RawMessage
				}
				if err := json.Unmarshal(line, &f); err != nil {
					return err
				}
				switch f.Type {
				case "event":
					if err := l.add(r, f.Event); err != nil {
						return err
					}
				case "error":
					return fmt.Errorf("%s", line)
				}
			}
		}
	}}
}

func dial(ctx context.Context, url, protocol string) (*websocket.Conn, error) {
	c, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{protocol}})
	if err != nil {
		return nil, err
	}
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	c.SetReadLimit(-1)
	return c, nil
}

// durable returns the URL of the session, or of a view of it, in Durable Streams.
func durable(base, view, offset, live string) string {
	return base + "/v1/stream/sessions/" + session + view + "?" + url.Values{"offset": {offset}, "live": {live}, "thread": {thread}}.Encode()
}

// longPoll follows the session in Durable Streams with requests that wait, and continues
// from its offset.
func longPoll() *reader {
	var l tape
	offset := "-1"
	return &reader{name: "Durable Streams, long-poll", follow: func(ctx context.Context, r *reader, base string) error {
		for {
			// All threads: the offsets of a selection have gaps.
			target := base + "/v1/stream/sessions/" + session + "?live=long-poll&offset=" + offset
			resp, err := http.DefaultTransport.RoundTrip(request(ctx, http.MethodGet, target, ""))
			if err != nil {
				return err
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			switch {
			case err != nil:
				return err
			case resp.StatusCode == http.StatusNoContent:
			case resp.StatusCode != http.StatusOK:
				return fmt.Errorf("%s %s", resp.Status, b)
			default:
				if err := each(b, func(raw []byte) error { return l.add(r, raw) }); err != nil {
					return err
				}
			}
			offset = resp.Header.Get("Stream-Next-Offset")
		}
	}}
}

// each calls f for each element of an array.
func each(array []byte, f func(raw []byte) error) error {
	var list []json.RawMessage
	if err := json.Unmarshal(array, &list); err != nil {
		return err
	}
	for _, raw := range list {
		if err := f(raw); err != nil {
			return err
		}
	}
	return nil
}

// durableStream follows the session in Durable Streams as an event stream.
func durableStream() *reader {
	var l tape
	return &reader{name: "Durable Streams, SSE", follow: followDurable("", func(r *reader, raw []byte) error { return l.add(r, raw) })}
}

// followDurable follows a stream as an event stream. The messages of an event count when
// the control event after it has come, which has the offset to continue from.
func followDurable(view string, take func(r *reader, raw []byte) error) func(context.Context, *reader, string) error {
	offset := "-1"
	return func(ctx context.Context, r *reader, base string) error {
		var data []byte
		target := durable(base, view, offset, "sse")
		if view == "" {
			target = base + "/v1/stream/sessions/" + session + "?live=sse&offset=" + offset
		}
		_, err := r.stream(request(ctx, http.MethodGet, target, ""), func(f sse.Frame) error {
			if f.Event == "data" {
				data = f.Data
				return nil
			}
			var control struct{ StreamNextOffset string }
			if err := json.Unmarshal(f.Data, &control); err != nil {
				return err
			}
			offset = control.StreamNextOffset
			if data == nil {
				return nil
			}
			err := each(data, func(raw []byte) error { return take(r, raw) })
			data = nil
			return err
		})
		return cmpErr(err)
	}
}
