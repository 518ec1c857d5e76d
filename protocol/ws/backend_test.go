package ws_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/protocol/ws"
)

// TestTextGoesOnAfterAJump: a text that is cleared or rewound while its backend sends it begins
// again, as a whole, and no message of the backend is refused.
func TestTextGoesOnAfterAJump(t *testing.T) {
	for name, jump := range map[string]func(t *testing.T, s *deck.Session) error{
		"clear": func(t *testing.T, s *deck.Session) error {
			_, err := s.Clear(t.Context(), "")
			return err
		},
		"clear of the element": func(t *testing.T, s *deck.Session) error {
			_, err := s.Clear(t.Context(), "thread_e")
			return err
		},
		"rewind": func(t *testing.T, s *deck.Session) error {
			_, err := s.Rewind(t.Context(), api.Rewind{ToOffset: new(int64(1))})
			return err
		},
	} {
		within(t, func(t *testing.T, w *world) {
			p := w.dial(t, paths[ws.Replay])
			defer func() { _ = p.CloseNow() }()
			p.send(t, `{"type":"text.message.start","elementId":"e","messageId":"m"}`)
			text := ""
			for i := range 9 {
				if i%3 == 2 {
					p.received()
					if err := jump(t, w.Session("s")); err != nil {
						t.Fatal(name, err)
					}
				}
				text += fmt.Sprint(i)
				p.send(t, fmt.Sprintf(`{"type":"text.message.content","messageId":"m","delta":"%d","content":%q}`, i, text))
			}
			p.send(t, `{"type":"text.message.end","messageId":"m"}`)
			p.send(t, `{"type":"replay.request","elementId":"e"}`)
			got := p.received()
			if !strings.Contains(got, `"messages":[{"id":"m","role":"assistant","content":"012345678","status":"complete",`) || strings.Contains(got, `"type":"error"`) {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

// TestReplayAfterClear: a history that is requested after a clear is that after the clear, at
// whatever speed the events are sent.
func TestReplayAfterClear(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, paths[ws.Replay])
		defer func() { _ = p.CloseNow() }()
		for i := range 50 {
			p.send(t, fmt.Sprintf(`{"type":"text.message.start","elementId":"e","messageId":"m%d"}`, i))
			p.send(t, fmt.Sprintf(`{"type":"text.message.content","messageId":"m%d","content":"hello"}`, i))
			p.send(t, fmt.Sprintf(`{"type":"text.message.end","messageId":"m%d"}`, i))
			p.send(t, `{"type":"clear.history"}`)
			p.send(t, `{"type":"replay.request","elementId":"e"}`)
			got := p.received()
			if at := strings.Index(got, "messages.snapshot"); at < 0 || !strings.Contains(got[at:], `"messages":[]`) {
				t.Fatalf("%d: %s", i, got)
			}
		}
	})
}

// TestFramesWithoutAnElement: the message of a text or the open call of a tool says which
// element a frame is of, also behind a frame that is refused, and on another socket.
func TestFramesWithoutAnElement(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p, other := w.dial(t, paths[ws.Replay]), w.dial(t, paths[ws.Replay])
		defer func() { _, _ = p.CloseNow(), other.CloseNow() }()
		for _, m := range []string{
			`{"type":"text.message.start","elementId":"a","messageId":"ma"}`,
			`{"type":"text.message.start","elementId":"b","messageId":"mb"}`,
			`{"type":"task.tool.start","toolName":"read"}`,
			`{"type":"text.message.content","messageId":"ma","content":"one"}`,
			`{"type":"task.tool.start","elementId":"a","toolName":"write"}`,
			`{"type":"task.tool.end","toolName":"none"}`,
			`{"type":"text.message.content","messageId":"ma","delta":"x","content":"not it"}`,
			`{"type":"task.tool.end","toolName":"read","result":"r"}`,
			`{"type":"text.message.end","messageId":"ma"}`,
		} {
			p.send(t, m)
		}
		refused := strings.Count(p.received(), `"type":"error"`)
		other.send(t, `{"type":"task.thinking","elementId":"c","message":"hm"}`)
		other.send(t, `{"type":"text.message.content","messageId":"mb","content":"two"}`)
		other.send(t, `{"type":"text.message.end","messageId":"mb"}`)
		other.received()
		for element, want := range map[string]string{
			"a": `"content":"one","status":"complete"`, "b": `"content":"two","status":"complete"`,
		} {
			other.send(t, fmt.Sprintf(`{"type":"replay.request","elementId":%q}`, element))
			if got := other.received(); !strings.Contains(got, want) || element == "b" && !strings.Contains(got, `"name":"read","args":{},"status":"complete","result":"r"`) {
				t.Errorf("%s: %s", element, got)
			}
		}
		if refused != 2 {
			t.Errorf("%d messages were refused", refused)
		}
	})
}

// TestClearWhileBackendsWrite: a clear succeeds while several backends write, and none of
// their messages is refused.
func TestClearWhileBackendsWrite(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		page := w.dial(t, paths[ws.Replay])
		defer func() { _ = page.CloseNow() }()
		var backends []*peer
		for range 4 {
			p := w.dial(t, paths[ws.Replay])
			defer func() { _ = p.CloseNow() }()
			backends = append(backends, p)
		}
		for i := range 40 {
			for k, p := range backends {
				if i == 0 {
					p.send(t, fmt.Sprintf(`{"type":"text.message.start","elementId":"e%d","messageId":"m%d"}`, k, k))
				}
				p.send(t, fmt.Sprintf(`{"type":"text.message.content","messageId":"m%d","content":%q}`, k, strings.Repeat("x", i+1)))
			}
			if i%5 == 4 {
				page.send(t, `{"type":"clear.history"}`)
			}
		}
		for k, p := range backends {
			p.send(t, fmt.Sprintf(`{"type":"text.message.end","messageId":"m%d"}`, k))
		}
		for _, p := range append(backends, page) {
			if got := p.received(); strings.Contains(got, `"type":"error"`) {
				t.Error(got[max(0, strings.Index(got, `"type":"error"`)-20):][:300])
			}
		}
	})
}

// TestClearBetweenFrames: what a backend writes after a clear is in the history, also the
// thought after it, and the result of a tool that began before it.
func TestClearBetweenFrames(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, paths[ws.Replay])
		defer func() { _ = p.CloseNow() }()
		history := func(frame string) string {
			p.received()
			if _, err := w.Session("s").Clear(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			p.send(t, frame)
			p.send(t, `{"type":"replay.request","elementId":"e"}`)
			got := p.received()
			if strings.Contains(got, `"type":"error"`) {
				t.Error(got)
			}
			_, snapshot, _ := strings.Cut(got, `"type":"messages.snapshot"`)
			return snapshot
		}
		p.send(t, `{"type":"task.thinking","elementId":"e","message":"one"}`)
		if got := history(`{"type":"task.thinking","elementId":"e","message":"two"}`); !strings.Contains(got, `"thinking":[{"message":"two"`) {
			t.Error(got)
		}
		if head, err := w.Session("s").Info(t.Context()); err != nil || len(head.Runs) != 1 {
			t.Errorf("the thought has no run: %v %v", head.Runs, err)
		}
		p.send(t, `{"type":"task.tool.start","elementId":"e","toolName":"read","toolArgs":{"path":"a"}}`)
		if got := history(`{"type":"task.tool.end","toolName":"read","result":"text"}`); !strings.Contains(got, `"name":"read","args":{"path":"a"},"status":"complete","result":"text"`) {
			t.Error(got)
		}
		p.send(t, `{"type":"task.tool.end","toolName":"read","result":"text"}`)
		if got := p.received(); !strings.Contains(got, "has no open call of the tool") {
			t.Error(got)
		}
	})
}

// TestBackendsInOneElement: what several backends write in one element at once is all kept.
func TestBackendsInOneElement(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		page := w.dial(t, paths[ws.Replay])
		defer func() { _ = page.CloseNow() }()
		const backends, rounds = 4, 25
		var peers []*peer
		for range backends {
			p := w.dial(t, paths[ws.Replay])
			defer func() { _ = p.CloseNow() }()
			peers = append(peers, p)
		}
		for i := range rounds {
			var sent sync.WaitGroup
			for n, p := range peers {
				sent.Go(func() {
					p.send(t, fmt.Sprintf(`{"type":"task.thinking","elementId":"e","message":"thought %d.%d"}`, n, i))
					p.send(t, fmt.Sprintf(`{"type":"text.message.chunk","elementId":"e","messageId":"m%d.%d","content":"hello"}`, n, i))
				})
			}
			sent.Wait()
		}
		for _, p := range peers {
			if got := p.received(); strings.Contains(got, `"type":"error"`) {
				t.Errorf("a message was refused: %.300s", got[strings.Index(got, `"type":"error"`)+1:])
			}
		}
		page.received()
		page.send(t, `{"type":"replay.request","elementId":"e"}`)
		if got := page.received(); strings.Count(got, `"thought `) != backends*rounds || strings.Count(got, `"content":"hello"`) != backends*rounds {
			t.Errorf("%d thoughts and %d texts", strings.Count(got, `"thought `), strings.Count(got, `"content":"hello"`))
		}
	})
}

// TestFramesAfterARefusedElement: a frame without an element is not of the element before one
// that was refused.
func TestFramesAfterARefusedElement(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		p := w.dial(t, paths[ws.Replay])
		defer func() { _ = p.CloseNow() }()
		for _, refused := range []string{fmt.Sprintf("%q", strings.Repeat("x", 200)), "7"} {
			p.send(t, `{"type":"task.thinking","elementId":"good","message":"hm"}`)
			p.send(t, fmt.Sprintf(`{"type":"task.thinking","elementId":%s,"message":"hm"}`, refused))
			p.send(t, `{"type":"task.tool.start","toolName":"read","toolArgs":["a"]}`)
			if got := p.received(); strings.Count(got, `"type":"error"`) != 2 || strings.Contains(got, "task.tool.start\"") {
				t.Errorf("after the element %.20s: %s", refused, got)
			}
		}
		p.send(t, `{"type":"task.tool.start","elementId":"good","toolName":"read","toolArgs":["a"]}`)
		if got := p.received(); !strings.Contains(got, `"toolArgs":["a"]`) {
			t.Error(got)
		}
	})
}
