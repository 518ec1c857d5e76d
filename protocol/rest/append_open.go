package rest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/frame"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/pipeline"
	"github.com/tapedeck/tapedeck/internal/problem"
)

const ndjson = "application/x-ndjson"

// maxLine is the longest line of an open body, in bytes.
const maxLine = 8 << 20

// IsOpen reports whether a request appends line by line: each line is an append of its
// own, and its answer is sent as soon as it is durable. The body may stay open.
func IsOpen(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(strings.Join(r.Header["Accept"], ","), ndjson) && mediaType(r) == ndjson
}

// An openBody is a request body whose lines are appends.
type openBody struct {
	*handler
	w       http.ResponseWriter
	r       *http.Request
	lines   *bufio.Reader
	appends *pipeline.Pipeline
	share   *intake.Share

	next tapedeck.Append // the head of the next append: its session, expected offset and producer
	seq  int64
}

// appendLines serves an open body. a has the session and the headers.
func (h *handler) appendLines(w http.ResponseWriter, r *http.Request, a tapedeck.Append) error {
	if _, err := h.Sessions.Head(r.Context(), a.Session); err != nil {
		return err
	}
	c := http.NewResponseController(w)
	defer context.AfterFunc(r.Context(), intake.Open(w, r))() // the server stops
	b := &openBody{handler: h, w: w, r: r, lines: bufio.NewReaderSize(r.Body, maxFrames), share: intake.ShareOf(r), next: a}
	w.Header().Set("Content-Type", ndjson)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_ = c.Flush() // if the client has disconnected, reading the body reports it
	shown := func(err error) *tapedeck.Error {
		return problem.Shown(r.WithContext(context.WithoutCancel(r.Context())), err, h.Logger)
	}
	send := func(answers []byte) error {
		_, err := w.Write(answers)
		return errors.Join(err, c.Flush())
	}
	b.appends = pipeline.Start(r.Context(), pipeline.Options{
		Append: h.Verbs.Append, Send: send, Shown: shown, Release: func(size int) { b.share.Give(int64(size)) },
	})
	err := b.readLines()
	b.appends.Close()                                                // what has arrived is appended
	if errors.Is(context.Cause(r.Context()), http.ErrServerClosed) { // a read error ends the context, too, with another cause
		err = tapedeck.Errorf(tapedeck.Unavailable, "the server stops").WithHint("send again what has no answer, as a producer")
	}
	if err != nil {
		_ = send(frame.AppendError(nil, -1, "", shown(err), err)) // if the client has disconnected, nobody needs it
	}
	return nil
}

// readLines reads until the body ends or a line is wrong.
func (b *openBody) readLines() error {
	for {
		line, err := b.readLine()
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if err := b.add(text, len(line)); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// readLine returns the next line in new memory.
func (b *openBody) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := b.lines.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, tapedeck.Errorf(tapedeck.TooLarge, "a line has more than %d MiB", maxLine>>20).WithHint("append it with a request of its own")
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF):
			return line, err
		default:
			return nil, readError(err)
		}
	}
}

// add appends a line: an event, or an array of events.
func (b *openBody) add(line []byte, size int) error {
	q := frame.Request{Type: frame.TypeAppend, Session: b.next.Session, Seq: b.seq, Expect: b.next.Expect, Producer: b.next.Producer}
	if line[0] != '[' {
		line = append(append(make([]byte, 0, len(line)+2), '['), line...)
		line = append(line, ']')
	}
	a := jsonobj.ReadArray(line)
	for raw, ok := a.Next(); ok; raw, ok = a.Next() {
		e, err := frame.Event(raw)
		if err != nil {
			return b.wrong(err)
		}
		q.Events = append(q.Events, e)
	}
	if a.Bad {
		return b.wrong(tapedeck.Errorf(tapedeck.Invalid, "it is neither an event nor an array of events"))
	}
	if err := b.share.Take(int64(size)); err != nil {
		return err
	}
	b.appends.Put([]frame.Request{q}, size)
	b.seq++
	b.next.Expect = nil
	if p := b.next.Producer; p != nil {
		b.next.Producer = &tapedeck.Producer{ID: p.ID, Epoch: p.Epoch, Seq: p.Seq + 1}
	}
	return nil
}

// wrong adds the number of the append to the error of a line.
func (b *openBody) wrong(err error) error {
	e := tapedeck.Errorf(tapedeck.KindOf(err), "append %d: %w", b.seq, err)
	if cause := (*tapedeck.Error)(nil); errors.As(err, &cause) {
		e.Hint = cause.Hint
	}
	return e
}
