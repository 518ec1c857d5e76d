package aisdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

const (
	maxChunk  = 8 << 20 // largest chunk of a recorded stream, in bytes
	maxQueued = 64      // chunks that wait for a commit
)

// ingest records the stream of an agent that runs elsewhere, such as in a route of a web
// application, while it arrives. The chunks that arrive during a commit are committed
// together. If the body ends before the message does, the run is interrupted.
func (h *handler) ingest(w http.ResponseWriter, r *http.Request) error {
	id, err := chat(r)
	if err == nil {
		err = tapedeck.CheckID("the name of the agent", r.PathValue("agent"))
	}
	if err != nil {
		return err
	}
	if t := mediaType(r); t != "text/event-stream" {
		return tapedeck.Errorf(tapedeck.Unsupported, "a body of type %.100q is not understood here", t).WithHint("send Content-Type: text/event-stream")
	}
	f := startFeed(r, intake.Open(w, r))
	defer f.stop()
	rec := newRecorder("agent:"+r.PathValue("agent"), func(run string) (string, bool) { return h.usedBy(r.Context(), id, run) })
	head, err := h.record(r.Context(), id, f, rec)
	if err == nil {
		return httpapi.WriteJSON(w, http.StatusOK, struct {
			MessageID string `json:"messageId"`
			Head      int64  `json:"head"`
		}{rec.run, head})
	}
	if rec.begun { // what has arrived stays, and its run must not stay open
		_, _ = h.append(context.WithoutCancel(r.Context()), tapedeck.Append{Session: id, Events: rec.broken()})
	}
	h.refuse(w, r, err) // before stop, which ends the context of the request
	return nil
}

// usedBy reports whether a session has a run of this id, or a recent message of a user. If that is the newest message of the
// chat, parent is its last run: the stream continues the message.
func (h *handler) usedBy(ctx context.Context, session, run string) (parent string, used bool) {
	_, used, err := h.Views.FindInvocation(ctx, session, run)
	if err != nil {
		return "", false
	}
	if !used {
		now, err := h.Views.Snapshot(ctx, session, view.Query{Thread: tapedeck.MainThread})
		return "", err == nil && findMessage(&now, run) != nil
	}
	_, now, err := h.now(ctx, session)
	if err != nil {
		return "", true
	}
	all := chainsOf(&now)
	if c := all.of[run]; c != nil && c.message() == all.last.message() {
		parent = c.last().Invocation
	}
	return parent, true
}

// record appends the chunks of a body. It returns the head after them.
func (h *handler) record(ctx context.Context, id string, f *feed, rec *recorder) (head int64, err error) {
	for raw := range f.chunks {
		for size := 0; raw != nil && err == nil; raw = f.next(size) {
			size += len(raw)
			err = rec.add(raw)
			f.share.Give(int64(len(raw)))
		}
		if events := rec.take(); len(events) > 0 {
			done, wrong := h.append(ctx, tapedeck.Append{Session: id, Events: events})
			if wrong != nil {
				rec.begun = false // the run has ended without the recorder, or never began
				return 0, wrong
			}
			rec.begun, head = !rec.ended, done.Head
		}
		if err != nil {
			return 0, err
		}
	}
	if f.err == nil && !rec.ended {
		f.err = tapedeck.Errorf(tapedeck.Invalid, "the stream ended before its message did").WithHint("send all chunks, until finish, error or abort")
	}
	return head, f.err
}

// A feed reads the chunks of a body that stays open.
type feed struct {
	chunks chan json.RawMessage // closed at the end of the body
	err    error                // why the body ended early; set before chunks is closed
	share  *intake.Share        // counts what is in chunks
	stop   func()               // returns when nothing reads the body any more
}

// startFeed reads the body of r, which is open. After cut a read of it fails.
func startFeed(r *http.Request, cut func()) *feed {
	f := &feed{chunks: make(chan json.RawMessage, maxQueued), share: intake.ShareOf(r)}
	ctx, cancel := context.WithCancel(r.Context())
	end := func() {
		cut()
		_ = r.Body.Close() // it waits for a read
	}
	keep := context.AfterFunc(r.Context(), end) // the server stops
	go func() {
		defer close(f.chunks)
		f.err = f.read(ctx, r)
	}()
	f.stop = func() {
		if cancel(); keep() && !f.ended() {
			end()
		}
		for raw := range f.chunks {
			f.share.Give(int64(len(raw)))
		}
	}
	return f
}

// ended reports whether the body was read to its end.
func (f *feed) ended() bool {
	select {
	case raw, more := <-f.chunks:
		f.share.Give(int64(len(raw)))
		return !more
	default:
		return false
	}
}

// next returns a chunk that has arrived, nil if none has or if a commit is large enough.
func (f *feed) next(size int) json.RawMessage {
	if size > maxChunk {
		return nil
	}
	select {
	case raw := <-f.chunks:
		return raw
	default:
		return nil
	}
}

// read reads chunks until the body or ctx ends.
func (f *feed) read(ctx context.Context, r *http.Request) error {
	for raw, err := range aguiwire.Frames(r.Body, maxChunk) {
		if err != nil {
			return notStream(err)
		}
		if string(raw) == "[DONE]" {
			continue
		}
		if err := f.share.Take(int64(len(raw))); err != nil {
			return err
		}
		select {
		case f.chunks <- raw:
		case <-ctx.Done():
			f.share.Give(int64(len(raw)))
			return ctx.Err()
		}
	}
	return nil
}

func notStream(err error) error {
	if refused, _ := intake.Refused(err); refused != nil {
		return refused
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, sse.ErrTooLarge) {
		return tapedeck.Errorf(tapedeck.TooLarge, "a chunk of the stream has more than %d MiB", maxChunk>>20)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the body is not an event stream, or broke off").Because(err)
}

// append appends events. If the session does not exist, it creates it first, with a title
// from the first message of a user. An append that expects nothing is refused if another
// request has created it meanwhile.
func (h *handler) append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	done, err := h.Verbs.Append(ctx, a)
	if tapedeck.KindOf(err) != tapedeck.NotFound {
		return done, err
	}
	created, err := h.Verbs.Create(ctx, api.NewSession{ID: a.Session, Title: titleOf(a.Events)})
	switch {
	case err == nil && a.Expect != nil:
		a.Expect = &created.Head
	case err != nil && tapedeck.KindOf(err) != tapedeck.Conflict:
		return done, err
	}
	return h.Verbs.Append(ctx, a)
}

// titleOf returns the first words of a user, "" if they are no title.
func titleOf(events []tapedeck.Event) string {
	for i := range events {
		d, err := payload.DecodeAs[payload.MessageAdded](events[i])
		if err != nil || d.Message.Role != payload.RoleUser {
			continue
		}
		title := strings.Join(strings.Fields(d.Message.Text()), " ")
		if r := []rune(title); len(r) > 80 {
			title = string(r[:79]) + "…"
		}
		if tapedeck.CheckName("the title", title) == nil {
			return title
		}
	}
	return ""
}
