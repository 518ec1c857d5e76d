package task_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/task"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A log is a store in memory, to which tests append events.
type log struct{ *hub.Hub }

// newHandler returns the handler over an empty log.
func newHandler() (http.Handler, log) {
	l := log{hub.New(memory.New(memory.Options{}))}
	return l.handler(task.Options{}), l
}

// handler returns the handler with options. It reads the log, unless they say
// otherwise.
func (l log) handler(o task.Options) http.Handler {
	if o.Sessions == nil {
		o.Sessions = l.Hub
	}
	o.Views = projection.New(projection.Options{Store: l.Hub})
	return task.New(o)
}

// create creates session s.
func (l log) create(t testing.TB, events ...tapedeck.Event) {
	t.Helper()
	if _, err := l.Create(context.Background(), tapedeck.Spec{ID: "s", Events: events}); err != nil {
		t.Fatal(err)
	}
}

// append appends events to session s.
func (l log) append(t testing.TB, events ...tapedeck.Event) {
	t.Helper()
	if _, err := l.Append(context.Background(), tapedeck.Append{Session: "s", Events: events}); err != nil {
		t.Error(err)
	}
}

// do is an event of invocation "i" on the main thread. data is JSON, in which ~
// stands for a double quote.
func do(typ, data string) tapedeck.Event {
	return tapedeck.Event{Type: typ, Invocation: "i", Data: json.RawMessage(strings.ReplaceAll(data, "~", `"`))}
}

// created is the first event of a session.
func created() tapedeck.Event {
	return tapedeck.Event{Type: tapedeck.SessionCreated, Data: json.RawMessage(`{}`)}
}

// play appends a run of an invocation: the words of the user, start, one message, and
// the end. It stops before the first event of a type in until.
func (l log) play(t *testing.T, invocation string, until ...string) {
	t.Helper()
	for _, e := range []tapedeck.Event{
		do("message.added", `{~message~:{~id~:~u~,~role~:~user~,~content~:~Hi~}}`),
		do("RUN_STARTED", `{}`),
		do("TEXT_MESSAGE_START", `{~messageId~:~m~}`), do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~a~}`),
		do("TEXT_MESSAGE_END", `{~messageId~:~m~}`), do("RUN_FINISHED", `{}`),
	} {
		if e.Invocation = invocation; slices.Contains(until, e.Type) {
			return
		}
		l.append(t, e)
	}
}

// finish appends the end of a run.
func (l log) finish(t *testing.T, invocation string) {
	e := do("RUN_FINISHED", `{}`)
	e.Invocation = invocation
	l.append(t, e)
}

// close closes session s.
func (l log) close(t *testing.T) error {
	_, err := l.Append(t.Context(), tapedeck.Append{Session: "s", Close: true, Events: []tapedeck.Event{{Type: tapedeck.SessionClosed}}})
	return err
}

// watch opens a stream, see [apitest.Watch].
func watch(t testing.TB, h http.Handler, target string, headers ...string) *apitest.Client {
	t.Helper()
	return apitest.Watch(t, h, target, headers...)
}
