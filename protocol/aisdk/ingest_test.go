package aisdk_test

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
)

// An upload is an agent elsewhere that sends its stream.
type upload struct {
	*io.PipeWriter
	got    *httptest.ResponseRecorder
	done   chan struct{}
	cancel context.CancelFunc
}

func (w *world) upload(t *testing.T, chat string) *upload {
	body, to := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	u := &upload{to, httptest.NewRecorder(), make(chan struct{}), cancel}
	r := httptest.NewRequestWithContext(ctx, "POST", "/aisdk/web/"+chat+"/events", body)
	r.Header.Set("Content-Type", "text/event-stream")
	go func() {
		defer close(u.done)
		defer func() { _ = body.Close() }() // as net/http does
		w.Handler.ServeHTTP(u.got, r)
	}()
	return u
}

func (u *upload) send(chunks ...string) {
	for _, c := range chunks {
		_, _ = io.WriteString(u, "data: "+c+"\n\n") // it fails if the server does not read any more
	}
}

// A chunk is durable and with the readers as soon as it is there, and the end of the
// body ends nothing twice.
func TestIngestIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		u := w.upload(t, "c")
		u.send(`{"type":"start","messageId":"m"}`, `{"type":"text-start","id":"0"}`, `{"type":"text-delta","id":"0","delta":"Hel"}`)
		synctest.Wait()
		late := &reader{w: w}
		late.Send(w.Handler, httptest.NewRequestWithContext(t.Context(), "GET", "/aisdk/steps/c/stream", nil))
		synctest.Wait()
		if got := late.Text(); !strings.Contains(got, `"delta":"Hel"`) || strings.Contains(got, "text-end") {
			t.Errorf("before the rest the reader has %s", got)
		}
		u.send(`{"type":"text-delta","id":"0","delta":"lo"}`, `{"type":"finish"}`, `{"type":"text-delta","id":"0","delta":"too late"}`, "[DONE]")
		_ = u.Close()
		<-u.done
		<-late.Done
		if got := late.Text(); !strings.Contains(got, `"delta":"lo"`) || strings.Contains(got, "late") || !strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Errorf("the reader has %s", got)
		}
		if u.got.Code != 200 {
			t.Errorf("%d %s", u.got.Code, u.got.Body)
		}
	})
}

// TestIngestOfAnyLines: a stream may begin with a byte order mark and end its lines with CR.
func TestIngestOfAnyLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		u := w.upload(t, "c")
		_, _ = io.WriteString(u, "\ufeffdata: {\"type\":\"start\",\"messageId\":\"m7\"}\r\rdata: {\"type\":\"finish\"}\r\r")
		_ = u.Close()
		<-u.done
		got := &reader{w: w}
		got.Send(w.Handler, httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/sessions/c/events", nil))
		<-got.Done
		if u.got.Code != 200 || !strings.Contains(got.Text(), `"m7"`) {
			t.Errorf("%d %s: %s", u.got.Code, u.got.Body, got.Text())
		}
	})
}

// However a stream ends early, its run ends, and nothing reads the body any more.
func TestIngestEndsEarly(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(t *testing.T, w *world, u *upload)
		code   int
		status tapedeck.Status
	}{
		"the user stops": {func(t *testing.T, w *world, u *upload) {
			r := httptest.NewRecorder()
			w.Handler.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), "POST", "/aisdk/steps/c/stop", nil))
			u.send(`{"type":"text-delta","id":"0","delta":"more"}`)
		}, 409, tapedeck.StatusCancelled},
		"a chunk does not fit": {func(_ *testing.T, _ *world, u *upload) {
			u.send(`{"type":"tool-input-delta","toolCallId":"nobody","inputTextDelta":"x"}`)
		}, 400, tapedeck.StatusInterrupted},
		"a chunk is too large": {func(_ *testing.T, _ *world, u *upload) {
			u.send(`{"type":"text-delta","id":"0","delta":"` + strings.Repeat("x", 9<<20) + `"}`)
		}, 413, tapedeck.StatusInterrupted},
		"the body ends":            {func(_ *testing.T, _ *world, u *upload) { _ = u.Close() }, 400, tapedeck.StatusInterrupted},
		"the connection breaks":    {func(_ *testing.T, _ *world, u *upload) { _ = u.CloseWithError(io.ErrUnexpectedEOF) }, 400, tapedeck.StatusInterrupted},
		"the client disconnects":   {func(_ *testing.T, _ *world, u *upload) { u.cancel() }, 503, tapedeck.StatusInterrupted},
		"the agent reports errors": {func(_ *testing.T, _ *world, u *upload) { u.send(`{"type":"error","errorText":"no"}`); _ = u.Close() }, 200, tapedeck.StatusFailed},
		"the agent aborts":         {func(_ *testing.T, _ *world, u *upload) { u.send(`{"type":"abort"}`); _ = u.Close() }, 200, tapedeck.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				u := w.upload(t, "c")
				u.send(`{"type":"start","messageId":"m"}`, `{"type":"text-start","id":"0"}`, `{"type":"text-delta","id":"0","delta":"Hel"}`)
				synctest.Wait()
				test.end(t, w, u)
				<-u.done
				if u.got.Code != test.code {
					t.Errorf("%d %s", u.got.Code, u.got.Body)
				}
				list, err := w.Sessions(t.Context(), tapedeck.Filter{})
				if s := list.Sessions[0]; err != nil || len(s.Runs) != 0 || s.Status != test.status {
					t.Errorf("the session is %s with the open runs %v, %v", s.Status, s.Runs, err)
				}
				if said := w.loaded("c"); !strings.Contains(asText(said), "Hel") {
					t.Errorf("the message has %v", said)
				}
			})
		})
	}
}
