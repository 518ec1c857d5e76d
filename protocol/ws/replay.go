package ws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Types of tapedeck.replay.v1.
const (
	typeTextStart   = "text.message.start"
	typeTextContent = "text.message.content"
	typeTextEnd     = "text.message.end"
	typeTextChunk   = "text.message.chunk"
	typeThinking    = "task.thinking"
	typeToolStart   = "task.tool.start"
	typeToolEnd     = "task.tool.end"
	typeRequest     = "replay.request"
	typeSnapshot    = "messages.snapshot"
	typeClear       = "clear.history"
	typePing        = "ping"
	typePong        = "pong"
	typeFailed      = "error"
)

// replayOptions say what a client wants.
type replayOptions struct {
	delta   bool // each piece of a text has the new part
	content bool // each piece of a text has the text so far
	user    bool // texts of users, too
	now     bool // the first messages say what the diagram shows now
}

// maxRequests is how many replays a client may have asked for without reading them.
const maxRequests = 100

// A replay is a socket that speaks tapedeck.replay.v1. One goroutine reads. Another one
// sends the events and the snapshots, so that a snapshot and the events after it fit
// without a gap.
type replay struct {
	*socket
	requests chan request
	wanted   []request // that wait for an event which the goroutine that sends has not seen
	wake     chan struct{}

	out *replayEncoder
	in  *replayDecoder

	elements *elements // of the workflow
	diagram  *diagram
	names    map[string]*aguiwire.Naming // of what the client has, by thread
}

// A request asks for the history of an element, with everything that was in the log before.
type request struct {
	element string
	head    int64 // of the session
}

func (s *socket) serveReplay(o replayOptions, from int64) {
	r := &replay{
		socket: s, requests: make(chan request, maxRequests), wake: make(chan struct{}, 1),
		out: &replayEncoder{options: o}, in: &replayDecoder{elements: map[string]*element{}, mine: map[openKey]bool{}},
		elements: newElements(), diagram: newDiagram(), names: map[string]*aguiwire.Naming{},
	}
	r.out.elements = r.elements
	s.report = func(err error) error { return r.sendError("", err) }
	defer s.watch()()
	var done sync.WaitGroup
	done.Go(func() {
		switch err := r.follow(from); {
		case errors.Is(err, errBroken):
			s.end(err)
		case err != nil && s.ctx.Err() == nil:
			s.end(faultOf(err, websocket.StatusGoingAway))
		}
	})
	done.Go(func() { s.beat(s.ctx, func() error { return s.conn.Ping(s.ctx) }) })
	err := r.readMessages()
	s.cancel()
	s.end(err)
	done.Wait()
}

// readMessages handles what the client sends, until the socket ends.
func (r *replay) readMessages() error {
	for {
		raw, err := r.read()
		if err != nil {
			return err
		}
		if !utf8.Valid(raw) { // encoding/json would replace what is not
			r.release(len(raw))
			return &fault{tapedeck.Errorf(tapedeck.Invalid, "the message is not valid UTF-8"), websocket.StatusInvalidFramePayloadData}
		}
		var m replayMessage
		if err = json.Unmarshal(raw, &m); err != nil {
			err = malformed(err)
			r.in.last = "" // what follows is not of the element before
		} else {
			err = r.handle(&m, raw)
		}
		r.release(len(raw))
		if err != nil {
			err = r.sendError(m.ElementID, err)
		}
		if err != nil {
			return err
		}
	}
}

// malformed is the error of a message that cannot be read.
func malformed(err error) error {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the member %s of the message cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "a message is one JSON object; this one is not")
}

// handle handles one message. An error concerns only this message.
func (r *replay) handle(m *replayMessage, raw []byte) error {
	ctx := context.WithoutCancel(r.ctx)
	switch {
	case m.Type == typePing:
		return r.sendMessage(&pong{typePong, timestamp(time.Now())})
	case m.Type == typeRequest:
		return r.request(m.ElementID)
	case m.Type == typeClear:
		if m.ElementID == "" && jsonobj.Member(raw, "elementId") != nil {
			_, err := threadOf("")
			return err
		}
		return r.clear(ctx, m.ElementID)
	case m.Type == typeTaskDone:
		return r.completeTask(ctx, m, raw)
	case ofDiagram[m.Type]:
		return r.pass(ctx, m, raw)
	}
	return r.in.accept(ctx, r.handler, r.session, m)
}

// request asks the goroutine that sends for the history of an element.
func (r *replay) request(element string) error {
	if _, err := threadOf(element); err != nil {
		return err
	}
	s, err := r.Sessions.Head(r.ctx, r.session)
	if err != nil {
		return err
	}
	select {
	case r.requests <- request{element, s.Head}:
	default:
		return tapedeck.Errorf(tapedeck.Limited, "%d replays are waiting", maxRequests).WithHint("read the answers before you ask for more")
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return nil
}

// threadOf returns the thread of an element.
func threadOf(element string) (string, error) {
	if element == "" {
		return "", tapedeck.Errorf(tapedeck.Invalid, "the message has no elementId")
	}
	return payload.ElementThread(element)
}

// follow sends what happens from an offset on, and the snapshots that the client asks for.
func (r *replay) follow(from int64) error {
	now, err := r.Views.Snapshot(r.ctx, r.session, newest(from))
	if err != nil {
		return err
	}
	r.out.begin(&now)
	w, err := r.learnWorkflows(now.Threads, from)
	if err != nil {
		return err
	}
	if r.out.options.now {
		if err := r.sendNow(&now, w, from); err != nil {
			return err
		}
	}
	next := from
	for page, err := range r.Sessions.Follow(r.ctx, r.session, tapedeck.FollowOptions{From: from, MaxBytes: pageBytes, Wake: r.wake}) {
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			e, err := rec.Event()
			if err != nil {
				return err
			}
			if err := r.sendEvent(&e); err != nil {
				return err
			}
		}
		next = page.Next
		if err := r.sendRequested(next); err != nil {
			return err
		}
	}
	return r.answerRequests(next)
}

// answerRequests sends the snapshots that the client asks for after the session was
// closed.
func (r *replay) answerRequests(at int64) error {
	for {
		select {
		case <-r.ctx.Done():
			return nil
		case <-r.wake:
		}
		if err := r.sendRequested(at); err != nil {
			return err
		}
	}
}

func (r *replay) sendEvent(e *tapedeck.Event) error {
	if j, ok := e.Jump(); ok {
		return r.sendJump(e, &j)
	}
	r.elements.note(e)
	names, err := r.namesFor(e)
	if err != nil {
		return err
	}
	if element := r.elements.of(e.ThreadName()).element; element != "" && r.out.replaces(e, names) {
		now, err := r.Views.Snapshot(r.ctx, r.session, newest(e.Offset+1))
		if err != nil {
			return err
		}
		r.out.begin(&now)
		return r.sendSnapshot(element, e.Offset+1)
	}
	if k, ok := r.out.reopens(e); ok {
		before, err := r.Views.Snapshot(r.ctx, r.session, shown(e.Offset, k.thread))
		if err != nil {
			return err
		}
		r.out.restore(k, &before)
	}
	for _, m := range r.out.encode(e, names) {
		if err := r.sendMessage(encodable(m)); err != nil {
			return err
		}
	}
	return r.sendDiagram(e)
}

// namesFor returns the ids of what the client has of the thread of e, before e.
func (r *replay) namesFor(e *tapedeck.Event) (*aguiwire.Naming, error) {
	thread := e.ThreadName()
	n := r.names[thread]
	if n == nil && r.elements.of(thread).element != "" {
		s, err := r.Views.Snapshot(r.ctx, r.session, shown(e.Offset, thread))
		if err != nil {
			return nil, err
		}
		n = r.learn(thread, &s)
	}
	if e.Type == tapedeck.MessagesSnapshot {
		delete(r.names, thread) // the view knows which are left
	}
	return n, nil
}

func (r *replay) learn(thread string, s *view.Snapshot) *aguiwire.Naming {
	n := aguiwire.NewNaming()
	n.Learn(s, aguiwire.OpenRun(s))
	r.names[thread] = &n
	return &n
}

// sendJump tells the client what a clear, a rewind or an overwrite has left.
func (r *replay) sendJump(e *tapedeck.Event, j *tapedeck.Jump) error {
	elements := r.reverted(j)
	maps.DeleteFunc(r.names, func(thread string, _ *aguiwire.Naming) bool { return j.Reverts(thread) })
	switch {
	case len(elements) == 0:
		return nil
	case e.Type == tapedeck.SessionCleared:
		r.out.forget(j)
		for _, element := range elements {
			if err := r.sendMessage(&replayMessage{Type: typeClear, ElementID: element, Timestamp: timestamp(e.Time)}); err != nil {
				return err
			}
		}
		return nil
	}
	now, err := r.Views.Snapshot(r.ctx, r.session, newest(e.Offset+1))
	if err != nil {
		return err
	}
	r.out.begin(&now)
	before, err := r.Views.Snapshot(r.ctx, r.session, view.Query{At: new(e.Offset), Limit: 1})
	if err != nil {
		return err
	}
	concerned := now.Threads
	for _, t := range before.Threads { // a thread of which nothing is left
		if !slices.ContainsFunc(now.Threads, func(n view.Thread) bool { return n.Name == t.Name }) {
			concerned = append(slices.Clip(concerned), t)
		}
	}
	var sent []string
	for i := range concerned {
		name := concerned[i].Name
		element := r.elements.of(name).element
		if element == "" || !j.Reverts(name) || slices.Contains(sent, element) {
			continue
		}
		sent = append(sent, element)
		if err := r.sendSnapshot(element, e.Offset+1); err != nil {
			return err
		}
	}
	return nil
}

// reverted returns the elements that a jump reverts; "" is all of them.
func (r *replay) reverted(j *tapedeck.Jump) (elements []string) {
	if j.Thread == "" {
		return []string{""}
	}
	for _, thread := range append([]string{j.Thread}, j.With...) {
		if element := r.elements.of(thread).element; element != "" && !slices.Contains(elements, element) {
			elements = append(elements, element)
		}
	}
	return elements
}

// sendRequested sends the snapshots that the client has asked for, as of an offset.
func (r *replay) sendRequested(at int64) error {
	for waiting := true; waiting; {
		select {
		case q := <-r.requests:
			r.wanted = append(r.wanted, q)
		default:
			waiting = false
		}
	}
	for len(r.wanted) > 0 && r.wanted[0].head <= at {
		if err := r.sendSnapshot(r.wanted[0].element, at); err != nil {
			return err
		}
		r.wanted = r.wanted[1:]
	}
	return nil
}

// sendSnapshot sends the history of an element.
func (r *replay) sendSnapshot(element string, at int64) error {
	h, err := r.history(element, at)
	if err != nil {
		return err
	}
	return r.sendMessage(h)
}

// history returns the history of an element, from all its threads.
func (r *replay) history(element string, at int64) (*history, error) {
	h, left := newHistory(element), shownBytes
	for _, thread := range r.elements.threads(element) {
		s, err := r.Views.Snapshot(r.ctx, r.session, shown(at, thread))
		if err != nil {
			return nil, err
		}
		r.learn(thread, &s)
		if size := s.Size(); left == shownBytes || size <= left {
			h.add(thread, r.elements.of(thread).index, &s, r.out.options.user)
			left -= size
		} else {
			h.Earlier += s.Earlier + len(s.Messages)
		}
	}
	return h, nil
}

func (r *replay) sendMessage(m any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return err
	}
	return r.send(b.Bytes())
}

// sendError sends the part of an error that the client may see.
func (r *replay) sendError(element string, err error) error {
	e := r.shown(err)
	return r.sendMessage(&replayError{Type: typeFailed, ElementID: element, Kind: e.Kind, Message: e.Message, Hint: e.Hint})
}
