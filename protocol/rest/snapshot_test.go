package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/view"
)

func getSnapshot(t *testing.T, handler http.Handler, path string) view.Snapshot {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/"+path, nil))
	var s view.Snapshot
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %v %s", path, w.Code, err, w.Body)
	}
	return s
}

func say(id, text string) tapedeck.Event {
	return tapedeck.Event{Type: tapedeck.TextMessageContent, Data: json.RawMessage(fmt.Sprintf(`{"messageId":%q,"delta":%q}`, id, text))}
}

// A snapshot has at most 16 MiB, however it is asked for, and paging back finds the rest.
func TestSnapshotOfLargeMessages(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	const count, size = 40, 1 << 20
	for i := range count {
		g.append(t, "s", tapedeck.Event{Type: tapedeck.MessageAdded, Data: fmt.Appendf(nil, `{"message":{"id":"m%d","role":"user","content":%q}}`, i, strings.Repeat("x", size))})
	}
	for _, query := range []string{"", "?limit=1000", "?limit=1000&thread=main"} {
		if s := getSnapshot(t, handler, "s/snapshot"+query); len(s.Messages) != 15 || s.Earlier != count-15 {
			t.Errorf("%q: %d messages, %d earlier", query, len(s.Messages), s.Earlier)
		}
	}
	found := 0
	for before := ""; ; {
		s := getSnapshot(t, handler, "s/snapshot?limit=1000"+before)
		if found += len(s.Messages); s.Earlier == 0 || len(s.Messages) == 0 {
			break
		}
		before = fmt.Sprint("&before=", s.Messages[0].Offset)
	}
	if found != count {
		t.Errorf("paging back finds %d messages", found)
	}
}

// A snapshot at the head, which continues the one before, is the same as one that is
// folded from the beginning, also with concurrent requests and appends.
func TestSnapshotsGoOn(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	var asking sync.WaitGroup
	written := make(chan struct{})
	for range 8 {
		asking.Go(func() {
			for done := false; !done; {
				select {
				case <-written:
					done = true // once more, with all events
				default:
				}
				s := getSnapshot(t, handler, "s/snapshot")
				if len(s.Messages) > 0 && int64(len(s.Messages[0].Text)) != s.At-1 {
					t.Errorf("at %d the text has %d bytes", s.At, len(s.Messages[0].Text))
				}
			}
		})
	}
	for range 200 {
		g.append(t, "s", say("m", "x"))
	}
	close(written)
	asking.Wait()
	latest, folded := getSnapshot(t, handler, "s/snapshot"), getSnapshot(t, handler, "s/snapshot?at=201")
	if a, b := fmt.Sprint(latest), fmt.Sprint(folded); latest.At != 201 || latest.Messages[0].Text != folded.Messages[0].Text {
		t.Errorf("continued\n%s\nfolded\n%s", a, b)
	}
	if early := getSnapshot(t, handler, "s/snapshot?at=11"); early.At != 11 || early.Messages[0].Text != strings.Repeat("x", 10) {
		t.Errorf("at 11: %+v", early)
	}
}

func TestSnapshotOfASessionMadeAnew(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	for _, text := range []string{"old and long", "new"} {
		g.session(t, "s", 0)
		g.append(t, "s", say("m", text))
		if got := getSnapshot(t, handler, "s/snapshot").Messages[0].Text; got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		if err := g.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
}

// More sessions than there are kept folds.
func TestSnapshotsOfManySessions(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	for round := range 3 {
		for i := range 40 {
			id := fmt.Sprintf("s%d", i)
			if round == 0 {
				g.session(t, id, 0)
			}
			g.append(t, id, say("m", id))
			if got, want := getSnapshot(t, handler, id+"/snapshot").Messages[0].Text, strings.Repeat(id, round+1); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

// Data with the deepest nesting that the log accepts does not break the view.
func TestSnapshotOfDeepData(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 0)
	deep := strings.Repeat("[", jsonobj.MaxNesting-1) + strings.Repeat("]", jsonobj.MaxNesting-1)
	g.append(t, "s", tapedeck.Event{Type: tapedeck.StateSnapshot, Data: json.RawMessage(`{"snapshot":` + deep + `}`)})
	g.append(t, "s", say("m", "fine"))
	s := getSnapshot(t, handler, "s/snapshot")
	if len(s.Messages) != 1 || s.State == nil || len(s.Notes) != 0 {
		t.Errorf("got %+v", s)
	}
}
