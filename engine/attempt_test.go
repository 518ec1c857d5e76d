package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// retrying loses its answer once in the middle.
func retrying(_ context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
	say("TEXT_MESSAGE_START", `{"messageId":"m1","role":"assistant"}`)
	say("TEXT_MESSAGE_CONTENT", `{"messageId":"m1","delta":"Hel"}`)
	say("usage.reported", `{"inputTokens":5,"outputTokens":1}`)
	say("attempt.superseded", `{"reason":"lost"}`)
	say("TEXT_MESSAGE_START", `{"messageId":"m1-2","role":"assistant"}`)
	say("TEXT_MESSAGE_CONTENT", `{"messageId":"m1-2","delta":"Hello"}`)
	say("TEXT_MESSAGE_END", `{"messageId":"m1-2"}`)
	return nil
}

// The views show the last attempt and the log has both. What the first one has used
// counts.
func TestAttemptOfARunner(t *testing.T) {
	inBubble(t, retrying, func(w *world) {
		w.create("s")
		w.start("s")
		synctest.Wait()
		compare(w, lines(w.events("s")), `
0 0 session.created {}
1 0 message.added {"message":{"id":"MSG","role":"user","content":"go"}}
2 0 RUN_STARTED {"metadata":{"tapedeck":{"agent":"bot","owner":"ENG"}},"runId":"INV","threadId":"main"}
3 0 TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}
4 0 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"Hel"}
5 0 usage.reported {"inputTokens":5,"outputTokens":1}
6 0 attempt.superseded {"attempt":2,"fromOffset":3,"reason":"lost"}
7 0 TEXT_MESSAGE_START {"messageId":"m1-2","role":"assistant"}
8 0 TEXT_MESSAGE_CONTENT {"messageId":"m1-2","delta":"Hello"}
9 0 TEXT_MESSAGE_END {"messageId":"m1-2"}
10 0 RUN_FINISHED {"outcome":{"type":"success"},"usage":[{"inputTokens":5,"outputTokens":1}],"threadId":"main","runId":"INV"}
`)
		for at, want := range map[int64]string{6: "user go, assistant Hel", 7: "user go", 9: "user go, assistant Hello", 11: "user go, assistant Hello"} {
			s := w.snapshot("s", at)
			if got := messagesIn(&s); got != want {
				w.Errorf("as of %d: %s, want %s", at, got, want)
			}
			if r := s.Runs[0].Retries; at > 6 && (len(r) != 1 || r[0] != view.Retry{From: 3, To: 6, Attempt: 2, Reason: "lost"}) || at == 6 && r != nil {
				w.Errorf("as of %d, the retries are %+v", at, r)
			}
		}
		if _, err := w.Undo(w.Context(), api.Undo{Session: "s"}); tapedeck.KindOf(err) != tapedeck.Conflict {
			w.Errorf("an undo: %v", err)
		}
	})
}

func (w *world) snapshot(session string, at int64) view.Snapshot {
	w.Helper()
	var jumps []tapedeck.Jump
	for _, e := range w.log(session)[:at] {
		if j, ok := e.Jump(); ok {
			jumps = append(jumps, j)
		}
	}
	c, err := view.Fold(tapedeck.Events(w.Context(), w.store, session, 0), view.NewTimeline(jumps), at)
	w.must(err)
	return c.Snapshot()
}

func messagesIn(s *view.Snapshot) (out string) {
	for i := range s.Messages {
		if i > 0 {
			out += ", "
		}
		out += s.Messages[i].Role + " " + s.Messages[i].Text
	}
	return out
}

// An outside loop appends an attempt with what comes before and after it, while another
// one does the same on another thread: each names the jump before it.
func TestAttemptsOfOutsideLoops(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	side := func(lines ...string) []tapedeck.Event {
		events := parse(lines...)
		for i := range events {
			events[i].Thread = "side"
		}
		return events
	}
	both := []string{
		`RUN_STARTED {"runId":"%s"}`, `TEXT_MESSAGE_START {"messageId":"a"}`, `attempt.superseded {}`,
		`TEXT_MESSAGE_START {"messageId":"b"}`, `attempt.superseded {"reason":"again"}`, `TEXT_MESSAGE_CHUNK {"messageId":"c","delta":"x"}`, `RUN_FINISHED {}`,
	}
	script := func(run string) (out []string) {
		for i, s := range both {
			if i == 0 {
				s = fmt.Sprintf(s, run)
			}
			out = append(out, s)
		}
		return out
	}
	w.store.before = func() { // after the events of the first append were formed
		_, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: side(script("r2")...)})
		w.must(err)
	}
	w.must(w.append("s", script("r1")...))
	last := int64(0)
	for _, e := range w.events("s") {
		if j, ok := e.Jump(); ok {
			if j.Previous != last || j.To != e.Offset-1 {
				w.Errorf("the attempt at %d: %+v, after the jump at %d", e.Offset, j, last)
			}
			last = e.Offset
		}
	}
	if s := w.snapshot("s", w.head("s").Head); w.head("s").LastJump != last || len(s.Messages) != 2 || s.Messages[0].ID != "c" || s.Messages[1].ID != "c" {
		w.Errorf("%+v", s.Messages)
	}
}

// A run that the server drives takes attempts from its runner only, and a rewind that
// cancels a run is not overtaken by an attempt of it.
func TestAttemptOfADrivenRun(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ tapedeck.Invocation, say func(string, string) bool) error {
		say("TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`)
		<-ctx.Done()
		say("attempt.superseded", `{}`)
		say("TEXT_MESSAGE_START", `{"messageId":"m2","role":"assistant"}`)
		return ctx.Err()
	}, func(w *world) {
		w.create("s")
		run := w.start("s")
		synctest.Wait()
		refuses(t, w.append("s", `attempt.superseded {}`), tapedeck.Conflict, "is written by the server that drives it")
		done, err := w.Rewind(w.Context(), api.Rewind{Session: "s", BeforeInvocation: run.Invocation})
		if err != nil || done.Marker == "" {
			w.Fatal(err)
		}
		if s := w.snapshot("s", w.head("s").Head); len(s.Messages) != 0 {
			w.Errorf("%+v", s.Messages)
		}
		if _, err := w.Undo(w.Context(), api.Undo{Session: "s"}); err != nil {
			w.Error(err)
		}
		s := w.snapshot("s", w.head("s").Head)
		if got := messagesIn(&s); got != "user go, assistant " || s.Messages[1].ID != "m2" {
			w.Errorf("after the undo: %s", got)
		}
	})
}

// After a restart an outside loop continues with an attempt that begins before it.
func TestAttemptAfterARestart(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	w.must(w.append("s", `RUN_STARTED {"runId":"r"}`, `TEXT_MESSAGE_START {"messageId":"a"}`, `attempt.superseded {}`, `TEXT_MESSAGE_START {"messageId":"b"}`))
	w.Engine = w.open(silent)
	w.must(w.append("s", `attempt.superseded {}`, `RUN_FINISHED {}`))
	events := w.events("s")
	if got := string(events[5].Data); got != `{"attempt":3,"fromOffset":4,"previous":3}` {
		w.Error(got)
	}
}

// An attempt whose place is in the log is formed before another jump is appended. It names
// that jump all the same.
func TestAttemptAfterAnotherJump(t *testing.T) {
	w := newWorld(t, silent)
	w.create("s")
	w.must(w.append("s", `message.added {"message":{"id":"u","role":"user","content":"x"}}`))
	side := parse(`RUN_STARTED {"runId":"r"}`, `TEXT_MESSAGE_START {"messageId":"a"}`)
	for i := range side {
		side[i].Thread = "side"
	}
	_, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: side})
	w.must(err)
	w.store.before = func() {
		_, err := w.Clear(t.Context(), api.Clear{Session: "s", Thread: "main"})
		w.must(err)
	}
	again := parse(`attempt.superseded {"fromOffset":3}`)
	again[0].Thread = "side"
	_, err = w.Append(t.Context(), tapedeck.Append{Session: "s", Events: again})
	w.must(err)
	events := w.log("s")
	if j, _ := events[5].Jump(); j.Previous != 4 || !j.Attempt {
		t.Errorf("%s %s", events[5].Type, events[5].Data)
	}
}
