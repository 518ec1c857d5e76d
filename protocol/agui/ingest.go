package agui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// ingest appends the events of an AG-UI agent that runs elsewhere, all or none. The
// body is what the agent sends: an event stream, events one a line, an event, or an
// array of events. The session is created if it does not exist.
func (h *handler) ingest(w http.ResponseWriter, r *http.Request) error {
	at, err := parseThread(r.PathValue("thread"))
	if err == nil {
		err = tapedeck.CheckID("the name of the agent", r.PathValue("agent"))
	}
	if err != nil {
		return err
	}
	a := tapedeck.Append{Session: at.session}
	if a.Producer, err = httpapi.Producer(r); err != nil {
		return err
	}
	raw, err := h.readEvents(w, r)
	if err != nil {
		return err
	}
	b := batch{place: at, actor: "agent:" + r.PathValue("agent"), limit: h.MaxEvents, known: map[string]bool{}, said: map[string][]string{}}
	now, err := h.Views.Snapshot(r.Context(), at.session, view.Query{Thread: at.lane})
	switch {
	case err == nil:
		b.learn(&now)
	case tapedeck.KindOf(err) != tapedeck.NotFound:
		return err
	}
	for _, one := range raw {
		if err := b.add(one); err != nil {
			return err
		}
	}
	if a.Events = b.events; len(a.Events) == 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "there are no events in the body")
	}
	done, err := h.appendOrCreate(r.Context(), a, b.title)
	if err != nil {
		return err
	}
	out := api.Appended{Head: done.Head, Duplicate: done.Duplicate}
	if last := done.Next - 1; done.First >= 0 {
		out.First, out.Last = &done.First, &last
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

// appendOrCreate appends events. If the session does not exist, it creates it first.
func (h *handler) appendOrCreate(ctx context.Context, a tapedeck.Append, title string) (tapedeck.Appended, error) {
	done, err := h.Verbs.Append(ctx, a)
	if tapedeck.KindOf(err) != tapedeck.NotFound {
		return done, err
	}
	_, err = h.Verbs.Create(ctx, api.NewSession{ID: a.Session, Title: title})
	created := err == nil
	if !created && tapedeck.KindOf(err) != tapedeck.Conflict { // another request has created it
		return done, err
	}
	if done, err = h.Verbs.Append(ctx, a); err != nil && created {
		_ = h.Verbs.Delete(ctx, a.Session) // the error of the append is the one that counts
	}
	return done, err
}

// readEvents reads the events in a body.
func (h *handler) readEvents(w http.ResponseWriter, r *http.Request) ([]json.RawMessage, error) {
	if r.ContentLength > h.MaxBody {
		return nil, &http.MaxBytesError{Limit: h.MaxBody}
	}
	split := map[string]func([]byte) ([]json.RawMessage, error){
		"text/event-stream": splitFrames, "application/json": splitArray,
		"application/x-ndjson": splitLines, "application/ndjson": splitLines, "application/jsonl": splitLines,
	}[mediaType(r)]
	if split == nil {
		return nil, tapedeck.Errorf(tapedeck.Unsupported, "a body of type %.100q is not understood here", r.Header.Get("Content-Type")).
			WithHint("send text/event-stream, application/x-ndjson or application/json")
	}
	body, err := intake.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody), r.ContentLength)
	if err != nil {
		return nil, readError(err)
	}
	return split(body)
}

func splitFrames(body []byte) (list []json.RawMessage, err error) {
	for raw, err := range aguiwire.Frames(bytes.NewReader(body), sse.MaxFrame) {
		if err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the body is not an event stream").Because(err)
		}
		list = append(list, raw)
	}
	return list, nil
}

func splitLines(body []byte) (list []json.RawMessage, err error) {
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			list = append(list, line)
		}
	}
	return list, nil
}

func splitArray(body []byte) (list []json.RawMessage, err error) {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return []json.RawMessage{body}, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	err = d.Decode(&list)
	if err == nil {
		_, err = d.Token()
	}
	if !errors.Is(err, io.EOF) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the body is not an array of events")
	}
	return list, nil
}

// A batch turns events of AG-UI into events of the log.
type batch struct {
	place
	actor  string
	limit  int
	known  map[string]bool     // ids of messages that the thread has
	said   map[string][]string // what users said, by the ids that the agent has for it
	next   int64               // the offset of the first event, if nobody else appends
	events []tapedeck.Event
	title  string // of a new session: the first words of a user
}

// learn notes the messages of the thread.
func (b *batch) learn(now *view.Snapshot) {
	b.known, b.next = aguiwire.Known(now), now.At
	names := aguiwire.NamesOf(now)
	for i := range now.Messages {
		if m := &now.Messages[i]; m.Role == payload.RoleUser {
			b.hear(m.ID, m.Text)
			b.hear(names.Message(m), m.Text)
		}
	}
}

// hear notes what a user said.
func (b *batch) hear(id, text string) {
	b.known[id] = true
	theirs, _, _ := strings.Cut(id, "@") // see addInput
	b.said[theirs] = append(b.said[theirs], text)
	if id != theirs {
		b.said[id] = append(b.said[id], text)
	}
}

// has reports whether the thread has a message. Some agents give each message of a user the
// same id, or count them from one in each run, so other words are another message.
func (b *batch) has(m *payload.Message) bool {
	if m.Role == payload.RoleUser {
		return slices.Contains(b.said[m.ID], m.Text())
	}
	return b.known[m.ID]
}

// add adds an event. The messages in the input of a run are the only record of what
// the user said, so those that are new become events of their own.
func (b *batch) add(raw json.RawMessage) error {
	if len(b.events) >= b.limit {
		return tapedeck.Errorf(tapedeck.TooLarge, "there are more than %d events in the body", b.limit).WithHint("append them in parts")
	}
	what := fmt.Sprint("event ", len(b.events)+1)
	e, err := aguiwire.Event(what, raw)
	if err != nil {
		refused := tapedeck.Errorf(tapedeck.Invalid, "%w", err)
		if jsonobj.Member(raw, "type") != nil {
			refused = refused.WithHint("events of other types go to POST /api/v1/sessions/{id}/events")
		}
		return refused
	}
	e.Thread, e.Actor = b.lane, b.actor
	if e.Type == tapedeck.RunStarted {
		if e.Invocation = jsonobj.StringOf(jsonobj.Member(raw, "runId")); e.Invocation == "" {
			return tapedeck.Errorf(tapedeck.Invalid, "%s, %s, has no runId", what, e.Type)
		}
		b.addInput(&e, jsonobj.Member(raw, "input"))
	}
	b.events = append(b.events, e)
	return nil
}

func (b *batch) addInput(begin *tapedeck.Event, raw json.RawMessage) {
	var in payload.RunInput
	if len(raw) == 0 || json.Unmarshal(raw, &in) != nil { // the engine refuses a wrong one
		return
	}
	for _, m := range aguiwire.NewMessagesFunc(in.Messages, b.has) {
		if m.Check() != nil || m.Role == payload.RoleActivity {
			continue
		}
		for m.Role == payload.RoleUser && b.known[m.ID] { // it must not replace the earlier message
			m.ID = aguiwire.Rename(m.ID, b.next+int64(len(b.events)))
		}
		e := payload.NewEvent(payload.MessageAdded{Message: m})
		e.Thread, e.Invocation, e.Actor = begin.Thread, begin.Invocation, b.actor
		b.events = append(b.events, e)
		if b.known[m.ID] = true; m.Role == payload.RoleUser {
			b.hear(m.ID, m.Text())
		}
		if m.Role == payload.RoleUser && b.title == "" {
			b.title = titleOf(m.Text())
		}
	}
}

// titleOf returns the first words of a text, "" if they are no title.
func titleOf(text string) string {
	title := strings.Join(strings.Fields(text), " ")
	if r := []rune(title); len(r) > 80 {
		title = string(r[:79]) + "…"
	}
	if tapedeck.CheckName("the title", title) != nil {
		return ""
	}
	return title
}
