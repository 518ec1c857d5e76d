package player

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

// tape returns a recording of these events, which are in one run.
func tape(t *testing.T, events ...taped) *Recording {
	t.Helper()
	r := NewRecording(false, 100)
	defer r.complete()
	begin := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	if len(events) > 0 {
		r.clock.Apply(&tapedeck.Event{Type: tapedeck.RunStarted, Invocation: "i", Time: begin.Add(time.Duration(events[0].at * float64(time.Second)))})
	}
	for i, e := range events {
		at := begin.Add(time.Duration(e.at * float64(time.Second)))
		if err := r.Add(&tapedeck.Event{Offset: int64(i), Type: e.typ, Time: at, Data: json.RawMessage(e.data)}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

type taped struct {
	at        float64 // seconds
	typ, data string
}

func user(at float64, text string) taped {
	return taped{at, tapedeck.MessageAdded, fmt.Sprintf(`{"message":{"id":"u%v","role":"user","content":%q}}`, at, text)}
}

func says(at float64, text string) taped {
	return taped{at, tapedeck.TextMessageContent, fmt.Sprintf(`{"messageId":"m","delta":%q}`, text)}
}

// aRun is a run with every kind of mark, and an idle gap from 4 s to 14 s.
func aRun(t *testing.T) *Recording {
	return tape(t,
		user(0, "fix it"),
		says(1, "I "), says(2, "look."),
		taped{3, tapedeck.ToolCallStart, `{"toolCallId":"t","toolCallName":"Read"}`},
		taped{3, tapedeck.ToolCallEnd, `{"toolCallId":"t"}`},
		taped{4, tapedeck.ToolCallResult, `{"toolCallId":"t","content":"no","metadata":{"tapedeck":{"error":true}}}`},
		user(14, "again"),
		says(15, "Yes."),
		taped{16, tapedeck.RunFinished, `{}`},
	)
}

// playing returns a player at the beginning of a recording.
func playing(r *Recording) *player {
	p := &player{Recording: r, playing: true, speed: 1}
	p.advance(0)
	return p
}

// shownText returns the text on a large screen.
func shownText(p *player) string { return strings.Join(p.rows(80, 50), "\n") }

func TestPlayerKeepsTheTiming(t *testing.T) {
	p := playing(aRun(t))
	for _, s := range []struct {
		after float64
		want  string
	}{
		{0.9, "› fix it"},
		{0.1, "› fix it\nI "},
		{1, "› fix it\nI look."},
		{1.5, "› fix it\nI look.\n  ⚙ Read "},
		{0.5, "› fix it\nI look.\n  ⚙ Read \n  ✗ Read 1s no"},
		{9.9, "› fix it\nI look.\n  ⚙ Read \n  ✗ Read 1s no"},
		{0.1, "› fix it\nI look.\n  ⚙ Read \n  ✗ Read 1s no\n› again"},
		{99, "› fix it\nI look.\n  ⚙ Read \n  ✗ Read 1s no\n› again\nYes.\ndone"},
	} {
		p.advance(time.Duration(s.after * float64(time.Second)))
		if got := shownText(p); got != s.want {
			t.Errorf("at %v: %q, want %q", p.position, got, s.want)
		}
	}
	if !p.ended() || p.position != 16*time.Second || p.wait() != 0 {
		t.Errorf("at the end: %v, wait %v", p.position, p.wait())
	}
}

// Changes of the session before, between and after runs take no time, and the time
// between runs is left out.
func TestPlayerLeavesOutTheSessionsOwnTime(t *testing.T) {
	r := NewRecording(false, 100)
	begin := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for i, e := range []tapedeck.Event{
		{Type: tapedeck.SessionCreated, Channel: tapedeck.ChannelSession, Time: begin.Add(-time.Hour)},
		{Type: tapedeck.TextMessageContent, Time: begin, Data: json.RawMessage(`{"messageId":"m","delta":"a"}`)},
		{Type: tapedeck.SessionRenamed, Channel: tapedeck.ChannelSession, Time: begin.Add(24 * time.Hour)},
		{Type: tapedeck.TextMessageContent, Time: begin.Add(time.Second), Data: json.RawMessage(`{"messageId":"m","delta":"b"}`)},
		{Type: tapedeck.SessionImported, Channel: tapedeck.ChannelSession, Time: begin.Add(999 * time.Hour)},
		{Type: tapedeck.MessageAdded, Channel: tapedeck.ChannelChunks, Time: begin.Add(5 * time.Hour), Data: json.RawMessage(`{"message":{"id":"u","role":"user","content":"c"}}`)},
	} {
		e.Offset = int64(i)
		if err := r.Add(&e); err != nil {
			t.Fatal(err)
		}
	}
	p := playing(r)
	if p.duration() != time.Second || shownText(p) != "a" {
		t.Errorf("%v long, begins with %q", p.duration(), shownText(p))
	}
}

// Events without times of their own are played one by one.
func TestPlayerWithoutTimes(t *testing.T) {
	p := playing(tape(t, user(0, "a"), says(0, "b"), says(0.1, "c"), taped{0.1, tapedeck.RunFinished, `{}`}))
	if p.duration() != 3*eventTakes || shownText(p) != "› a" || !strings.Contains(p.status(100), "event 1 of 4 (they have no times)") {
		t.Errorf("%v long, begins with %q: %s", p.duration(), shownText(p), p.status(100))
	}
	p.advance(eventTakes)
	if shownText(p) != "› a\nb" || !strings.Contains(p.status(100), "event 2 of 4") {
		t.Errorf("then %q: %s", shownText(p), p.status(100))
	}
	p.press('5')
	if shownText(p) != "› a\nb" {
		t.Errorf("in the middle: %q", shownText(p))
	}
	if p.advance(time.Minute); !p.ended() {
		t.Errorf("not ended at %v", p.position)
	}
}

func TestPlayerSpeedAndIdle(t *testing.T) {
	for _, c := range []struct {
		speed    float64
		skipIdle bool
		want     time.Duration // of real time until the end
	}{
		{1, false, 16 * time.Second},
		{0.5, false, 32 * time.Second},
		{16, false, time.Second},
		{1, true, 6300 * time.Millisecond},
		{2, true, 3150 * time.Millisecond},
	} {
		p := playing(aRun(t))
		p.speed, p.skipIdle = c.speed, c.skipIdle
		p.advance(c.want - time.Millisecond)
		if p.ended() {
			t.Errorf("%v: ended too early", c)
		}
		if p.advance(2 * time.Millisecond); !p.ended() {
			t.Errorf("%v: not ended at %v", c, p.position)
		}
	}
}

// Joined deltas are shown one by one, each at its time.
func TestPlayerTakesJoinedDeltasApart(t *testing.T) {
	joined := `{"messageId":"m","delta":"one tw\u00f6 three","cuts":[[4,0],[5,500],[5,1500]]}`
	p := playing(tape(t, taped{0, tapedeck.TextMessageContent, joined}, says(3, ".")))
	for _, s := range []struct {
		to   int // milliseconds
		want string
	}{{0, "one "}, {400, "one "}, {500, "one twö "}, {1500, "one twö three"}, {3000, "one twö three."}} {
		p.advance(time.Duration(s.to)*time.Millisecond - p.position)
		if got := shownText(p); got != s.want {
			t.Errorf("at %v: %q, want %q", s.to, got, s.want)
		}
	}
	halves := playing(tape(t, taped{0, tapedeck.TextMessageContent, `{"messageId":"m","delta":"go \ud83d","cuts":[[3,0],[3,500]]}`},
		taped{1, tapedeck.TextMessageContent, `{"messageId":"m","delta":"\ude80 on","cuts":[[3,0],[3,500]]}`}))
	for _, s := range []struct {
		to   int
		want string
	}{{0, "go "}, {600, "go "}, {1000, "go 🚀"}, {1500, "go 🚀 on"}} {
		halves.advance(time.Duration(s.to)*time.Millisecond - halves.position)
		if got := shownText(halves); got != s.want {
			t.Errorf("halves at %v: %q, want %q", s.to, got, s.want)
		}
	}
	// A step goes to the next event, not to the next part.
	p.press('g')
	if p.press('.'); shownText(p) != "one twö three." && p.event() != 1 {
		t.Errorf("a step from the first part went to event %d: %q", p.event(), shownText(p))
	}
	for _, bad := range []string{"[[4,0]]", "[[4,0],[99,1]]", "[[-1,0],[1,1]]", "[[7,0],[7,1]]", "[[4,0],[4,1]]", "7"} {
		p := playing(tape(t, taped{0, tapedeck.TextMessageContent, strings.Replace(joined, "[[4,0],[5,500],[5,1500]]", bad, 1)}))
		if shownText(p) != "one twö three" && bad != "7" {
			t.Errorf("cuts %s: %q", bad, shownText(p))
		}
	}
}

func TestPlayerKeys(t *testing.T) {
	for _, c := range []struct {
		keys    string
		event   int // that is shown last
		playing bool
	}{
		{"", 0, true},
		{".", 1, false},
		{"...", 3, false},
		{"..,", 1, false},
		{",,,", -1, false},
		{"]", 3, true},   // the tool
		{"]]", 5, true},  // the error
		{"]]]", 6, true}, // the user
		{"]]]]", 6, true},
		{"]]][", 5, true},
		{"]]][[", 3, true},
		{"]]][[[", 0, true},
		{"]]][[[[", -1, true},
		{"t", 3, true},
		{"tt", 3, true},
		{"e", 5, true},
		{"u", 6, true},
		{"5", 5, true}, // 8 of 16 s
		{"9", 6, true},
		{"90", 0, true},
		{"G", 8, true},
		{"G ", 0, true},  // at the end, Space plays from the beginning
		{"G, ", 7, true}, // but not one event before it
		{" ", 0, false},
		{"  ", 0, true},
		{"Gg", 0, true},
		{"?]", 0, true}, // closes the help
		{"?]]", 3, true},
		{"xyz", 0, true},
	} {
		p := playing(aRun(t))
		for _, k := range c.keys {
			if p.press(key(k)) {
				t.Fatalf("%q quits", c.keys)
			}
		}
		if p.event() != c.event || p.playing != c.playing {
			t.Errorf("%q: at event %d, playing %v; want %d, %v", c.keys, p.event(), p.playing, c.event, c.playing)
		}
	}
	p := playing(aRun(t))
	for _, k := range []key{'q', keyCtrlC} {
		if !p.press(k) {
			t.Errorf("%q does not quit", rune(k))
		}
	}
}

func TestPlayerSpeedKeys(t *testing.T) {
	p := playing(aRun(t))
	var got []float64
	for _, k := range ">>>>>" + "<<<<<<<" {
		p.press(key(k))
		got = append(got, p.speed)
	}
	if want := []float64{2, 4, 8, 16, 16, 8, 4, 2, 1, 0.5, 0.5, 0.5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	p.speed = 3 // from the command line
	if p.press('<'); p.speed != 2 {
		t.Errorf("below 3 is %v", p.speed)
	}
}

// While it plays, the previous mark is not the one that was passed a moment ago.
func TestPlayerGetsPastAMarkWhilePlaying(t *testing.T) {
	p := playing(aRun(t))
	p.press(']')
	p.advance(600 * time.Millisecond) // past the tool at 3 s, and event 4
	if p.press('['); p.event() != 0 {
		t.Errorf("at event %d", p.event())
	}
	p.press(']')
	p.press(' ')
	p.press('.')
	if p.press('['); p.event() != 3 {
		t.Errorf("paused: at event %d", p.event())
	}
}

func TestPlayerOfNothing(t *testing.T) {
	p := playing(tape(t))
	for _, k := range " .,[]teu059gG<>s?x" {
		p.press(key(k))
		p.advance(time.Second)
		if n := len(p.frame(20, 5)); n != 5 {
			t.Fatalf("after %q: %d rows", k, n)
		}
	}
}

// A frame fits the screen, whatever its size and whatever keys are pressed.
func TestFramesFit(t *testing.T) {
	r := tape(t, user(0, "ein längerer Text 日本語のテキスト 👩‍💻 und so weiter\tTab\n\nzweite"),
		says(5, strings.Repeat("wort ", 100)), taped{9, tapedeck.RunError, `{"message":"no"}`}, user(4, "the clock went back"))
	r.pen.Color = true
	rng := rand.New(rand.NewPCG(1, 2))
	keys := []rune(" .,[]teu0123456789gG<>s?")
	p := playing(r)
	for range 3000 {
		p.press(key(keys[rng.IntN(len(keys))]))
		p.advance(time.Duration(rng.IntN(2000)) * time.Millisecond)
		width, height := 1+rng.IntN(100), 1+rng.IntN(30)
		frame := p.frame(width, height)
		if len(frame) != height {
			t.Fatalf("%d rows for a height of %d", len(frame), height)
		}
		for _, row := range frame {
			if n := textWidth(row); n > max(width, 2) || strings.ContainsAny(row, "\n\t\r") {
				t.Fatalf("a row of %d for a width of %d: %q", n, width, row)
			}
		}
	}
}

func TestFrame(t *testing.T) {
	p := playing(aRun(t))
	p.press(']')
	p.press(' ')
	p.press('>')
	p.press('s')
	want := []string{
		"› fix it",
		"I look.",
		"",
		"›━━━━━━━━━━━━━━━━━━━━●──────!─────────────────────────────────────────────────────────────────────›─────────────",
		"‖ paused 0:03.0 / 0:16.0 · Playback (the agent is not called) · offset 3 of 8 · 2× · idle skipped · ? help",
	}
	if got := p.frame(112, 5); !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if got := p.frame(30, 4); got[3] != "‖ paused 0:03.0 / 0:16.0 · 2×" {
		t.Errorf("narrow: %q", got[3])
	}
}
