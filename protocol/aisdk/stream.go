package aisdk

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// readBytes is how much is read for one write. A client that has stalled keeps this
// much in memory.
const readBytes = 128 << 10

// VersionHeader is the header with which a client names the version of its AI SDK. A client
// that does not gets what 6 and 7 understand: those of version 5 end a stream with an error
// when they see an approval, and only those of version 7 know messages that steer.
const VersionHeader = "Tapedeck-AI-SDK-Version"

// versionOf returns the version of the client's AI SDK.
func versionOf(r *http.Request) (int, error) {
	switch v, _, _ := strings.Cut(strings.TrimSpace(r.Header.Get(VersionHeader)), "."); v {
	case "5":
		return 5, nil
	case "", "6":
		return 6, nil
	case "7":
		return 7, nil
	default:
		return 0, tapedeck.Errorf(tapedeck.Invalid, "the header %s must be 5, 6 or 7, not %.20q", VersionHeader, v)
	}
}

// A stream sends one message to a client. It begins with start and ends with [DONE],
// whatever happens.
type stream struct {
	*handler
	*encoder
	out     *sse.Stream
	session string
	past    past
	known   int64 // the client has what came after this offset, also of earlier attempts; -1 for a client that has nothing
}

// A past says what earlier attempts of a run have done, as of an offset. The stream of
// a message that is read from its beginning leaves it out.
type past struct {
	attempts []tapedeck.Jump
	to       int64
}

// has reports whether an event is a part of an earlier attempt, or says that it is one.
func (p *past) has(e *tapedeck.Event) bool {
	return e.Offset < p.to && (e.Type == tapedeck.AttemptSuperseded || slices.ContainsFunc(p.attempts, func(j tapedeck.Jump) bool {
		return j.To <= e.Offset && e.Offset < j.Offset
	}))
}

// findPast finds the attempts since an offset.
func (s *stream) findPast(ctx context.Context, from int64) error {
	head, err := s.Sessions.Head(ctx, s.session)
	if err != nil || head.LastJump <= from || s.known == 0 {
		return err
	}
	t, err := s.Views.Timeline(ctx, s.session, head.Head)
	if err != nil {
		return err
	}
	s.past.to = head.Head
	if s.known >= 0 {
		s.past.to = min(s.known, head.Head)
	}
	for _, j := range t.Jumps() {
		if j.Attempt && j.Offset > from && j.Offset < s.past.to && j.Reverts(tapedeck.MainThread) {
			s.past.attempts = append(s.past.attempts, j)
			s.attempts = s.past.to
		}
	}
	return nil
}

var (
	errStopped = tapedeck.Errorf(tapedeck.Unavailable, "the server stops").WithHint("resume the stream; the run was ended")
	errCutOff  = tapedeck.Errorf(tapedeck.Gone, "the session ended before its run did")
)

func (h *handler) newStream(w http.ResponseWriter, version int, session string, runs ...string) *stream {
	w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise some proxies hold chunks back
	return &stream{handler: h, encoder: newEncoder(version, runs), out: sse.NewStream(w, sse.Heartbeat), session: session, known: -1}
}

// done ends every stream.
var done = []byte("data: [DONE]\n\n")

func (s *stream) send() error {
	frames := s.take()
	if s.ended {
		frames = append(frames, done...)
	}
	return s.out.Send(frames)
}

// follow sends the chunks of a message, whose first event is at or after an offset, until
// its last run ends or waits for an answer. An error before the first chunk is the answer of
// the request; later it becomes a chunk.
func (s *stream) follow(r *http.Request, from int64) error {
	defer s.out.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.Stop, cancel)()
	if err := s.findPast(ctx, from); err != nil {
		return err
	}
	o := tapedeck.FollowOptions{From: from, Idle: sse.Heartbeat / 2, MaxBytes: readBytes}
	for page, err := range s.Sessions.Follow(ctx, s.session, o) {
		if err == nil {
			err = s.page(page)
		}
		switch {
		case errors.Is(err, sse.ErrDisconnected), err != nil && r.Context().Err() != nil:
			return nil
		case err != nil && !s.out.Started():
			return err
		case err != nil:
			if s.Stop.Err() != nil {
				err = errStopped
			}
			s.cut(r, err)
			return nil
		case s.ended:
			return nil
		}
	}
	s.cut(r, errCutOff)
	return nil
}

// page sends the chunks of a page.
func (s *stream) page(page tapedeck.Page) error {
	for _, rec := range page.Records {
		e, err := rec.Event()
		if err != nil {
			return err
		}
		if e.ThreadName() != tapedeck.MainThread || !slices.Contains(s.runs, e.Invocation) || s.past.has(&e) {
			continue
		}
		if s.addFrom(&e); s.ended {
			return s.send()
		}
	}
	if page.CaughtUp() && s.waits() {
		s.wait(page.Next)
	}
	return s.send()
}

// addFrom gathers the chunks of an event that the client does not have. Of the events
// before, only the first one has a chunk for it: that names the message to continue.
func (s *stream) addFrom(e *tapedeck.Event) {
	if e.Offset >= s.from {
		s.add(e)
		return
	}
	n := len(s.buf)
	if s.add(e); e.Type == tapedeck.RunStarted && e.Invocation == s.runs[0] {
		return
	}
	s.pause() // the stream that the client had has ended, and so all that was open
	s.buf = s.buf[:n]
}

// eventCut names the frames that end a stream before its run has ended. A client that can
// connect again leaves them out: none of them is in the stream when it is sent again.
const eventCut = "cut"

// cut ends the stream with an error that is not the error of the run.
func (s *stream) cut(r *http.Request, err error) {
	if s.ended {
		return
	}
	s.flush()
	if !errors.Is(err, errCutOff) { // nothing more would come
		s.event = eventCut
	}
	s.closeParts()
	s.endStep()
	s.put(chunkError, text("errorText", sentence(problem.Shown(r, err, s.Logger))))
	s.ended = true
	_ = s.send() // the stream ends in any case
}
