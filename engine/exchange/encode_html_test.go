package exchange

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

var testPlayer = Player{Script: "play()", Style: "p{}"}

var packed = regexp.MustCompile(`(<script type="application/vnd\.tapedeck\.(?:events|about)">)([^<]*)`)

// unpacked returns a recording with its packed elements unpacked.
func unpacked(t testing.TB, page string) string {
	t.Helper()
	return packed.ReplaceAllStringFunc(page, func(m string) string {
		parts := packed.FindStringSubmatch(m)
		z, err := base64.StdEncoding.DecodeString(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(z))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return parts[1] + "\n" + strings.TrimSuffix(string(plain), "\n") + "\n"
	})
}

// packedIn returns the contents of the elements of a kind.
func packedIn(page, kind string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?s)<script type="application/vnd\.tapedeck\.`+kind+`">\n(.*?)\n</script>\n`).FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

func aboutIn(t testing.TB, page string) tape {
	t.Helper()
	var about tape
	if err := json.Unmarshal([]byte(packedIn(page, "about")[0]), &about); err != nil {
		t.Fatal(err)
	}
	return about
}

// TestRecordingHasAllThatNDJSONHas: a recording has the same events, in elements
// of about a megabyte.
func TestRecordingHasAllThatNDJSONHas(t *testing.T) {
	lines := []string{`session.created {"title":"Long"}`}
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf(`acme.note {"n":%d,"text":%q}`, i, strings.Repeat("word ", 180)))
	}
	src := source(log(lines...))
	page := export(t, HTML, src)
	parts := packedIn(page, "events")
	if len(parts) < 3 || len(parts) > 5 {
		t.Errorf("%d elements", len(parts))
	}
	_, events, _ := strings.Cut(export(t, NDJSON, src), "\n")
	if strings.Join(parts, "\n")+"\n" != events {
		t.Error("the events are not those of the session")
	}
	if about := aboutIn(t, page); about.To != 3001 || about.Session.Head != 3001 || about.Index.Events != 3001 || about.Summary.Events != 3001 {
		t.Errorf("%+v", about)
	}
}

// TestRecordingIsTheSameEachTime: two recordings of one moment are equal.
func TestRecordingIsTheSameEachTime(t *testing.T) {
	var first string
	for range 3 {
		x, err := Encode(HTML, source(rewound()))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := x.Write(&b); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = b.String()
		}
		if b.String() != first {
			t.Fatal("it is another file")
		}
	}
}

// TestRecordingTooLarge: a recording at the limit is written. One over it fails
// before the first byte.
func TestRecordingTooLarge(t *testing.T) {
	src := source(log(talk...))
	_, events, _ := strings.Cut(export(t, NDJSON, src), "\n")
	src.limit = len(events)
	if _, err := Encode(HTML, src); err != nil {
		t.Error(err)
	}
	src.limit--
	_, err := Encode(HTML, src)
	if tapedeck.KindOf(err) != tapedeck.TooLarge || !strings.Contains(err.(*tapedeck.Error).Hint, "ndjson") {
		t.Errorf("%v", err)
	}
	if _, err := Encode(NDJSON, src); err != nil {
		t.Errorf("other formats have no limit: %v", err)
	}
}

func TestRecordingNeedsAPlayer(t *testing.T) {
	src := source(log(talk...))
	src.Player = Player{}
	if _, err := Encode(HTML, src); tapedeck.KindOf(err) != tapedeck.Unsupported {
		t.Error(err)
	}
}

// TestRecordingOfActiveEvents: a player needs every offset, and runs that end.
func TestRecordingOfActiveEvents(t *testing.T) {
	events := log(`session.created {"title":"A"}`, `RUN_STARTED {"threadId":"main","runId":"inv_1"}`,
		`TEXT_MESSAGE_START {"messageId":"a1","role":"assistant"}`, `TEXT_MESSAGE_CONTENT {"messageId":"a1","delta":"kept"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"a1","delta":"reverted text"}`, `TEXT_MESSAGE_END {"messageId":"a1"}`,
		`RUN_FINISHED {"threadId":"main","runId":"inv_1"}`, `session.rewound {"marker":"m","toOffset":4}`, `acme.note {"n":1}`)
	src := source(events)
	src.Effective = true
	page := export(t, HTML, src)
	var types []string
	for i, line := range strings.Split(strings.Join(packedIn(page, "events"), "\n"), "\n") {
		var e tapedeck.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Offset != int64(i) || e.Channel == "" {
			t.Errorf("event %d: %s", i, line)
		}
		types = append(types, e.Type)
	}
	want := "session.created RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT acme.note TEXT_MESSAGE_END RUN_ERROR"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if about := aboutIn(t, page); about.View != viewEffective || about.To != 9 || about.Session.Head != 7 || strings.Contains(page, "reverted text") {
		t.Errorf("%+v", about)
	}
}

// TestRecordingOpensAsAsked: a recording of active events has other offsets, and so have
// its start and its poster.
func TestRecordingOpensAsAsked(t *testing.T) {
	events := log(`session.created {"title":"A"}`, `acme.note {"n":1}`, `acme.note {"n":2}`, `session.rewound {"marker":"m","toOffset":2}`, `acme.note {"n":3}`)
	for _, tt := range []struct {
		effective             bool
		start, poster         int64
		wantStart, wantPoster int64
	}{
		{false, 0, 5, 0, 5},
		{false, 2, 3, 2, 3},
		{true, 0, 1, 0, 1},
		{true, 4, 5, 2, 3}, // offsets 2 and 3 are not in the file
		{true, 2, 3, 2, 2}, // a reverted moment: the next active one
	} {
		src := source(events)
		src.Effective, src.Look = tt.effective, Look{Start: &tt.start, Poster: &tt.poster, Theme: "dark"}
		got := aboutIn(t, export(t, HTML, src)).Look
		if got.Start == nil || *got.Start != tt.wantStart || got.Poster == nil || *got.Poster != tt.wantPoster || got.Theme != "dark" {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
	if about := packedIn(export(t, HTML, source(events)), "about")[0]; strings.Contains(about, "poster") || strings.Contains(about, "theme") {
		t.Errorf("nothing was asked for: %s", about)
	}
}

// TestRecordingIsRedacted in all its parts: the summary and the index are made
// from the redacted events.
func TestRecordingIsRedacted(t *testing.T) {
	src := source(log(`session.created {"title":"hunter2"}`,
		`message.added {"message":{"id":"u1","role":"user","content":"my word is hunter2"}}`,
		`RUN_STARTED {"threadId":"main","runId":"inv_1"}`, `TEXT_MESSAGE_START {"messageId":"a1","role":"assistant"}`,
		`TEXT_MESSAGE_CONTENT {"messageId":"a1","delta":"hunt"}`, `TEXT_MESSAGE_CONTENT {"messageId":"a1","delta":"er2"}`))
	src.Session.Title = "hunter2"
	src.Redactor = redactor(t, api.Redaction{Patterns: []string{"hunter2"}})
	page := export(t, HTML, src)
	if strings.Contains(page, "hunter2") || strings.Contains(page, "hunt") || !aboutIn(t, page).Redacted {
		t.Error(page)
	}
	if !strings.Contains(page, "<title>[redacted] ·") {
		t.Error("the title is not that of a redacted session")
	}
	src.Redactor = redactor(t, api.Redaction{Patterns: []string{"nothing like this"}})
	if aboutIn(t, export(t, HTML, src)).Redacted {
		t.Error("it says that something was redacted, and nothing was")
	}
}

// TestRecordingRunsNothingOfASession: outside of the packed elements there is only
// the title, as text. The policy allows only our script and our style.
func TestRecordingRunsNothingOfASession(t *testing.T) {
	src := source(log(talk...))
	src.Session.Title = "</title><script>pwn()</script>\u202e\n<style>"
	src.Session.ID = "a\"><script>pwn()</script>"
	x, err := Encode(HTML, src)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := x.Write(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "<script"); n != 3 || strings.Count(page, "<style") != 1 || strings.Contains(page, "pwn()<") {
		t.Errorf("%d scripts in %s", n, page)
	}
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	want := "default-src 'none'; script-src " + hashOf("play()") + "; style-src " + hashOf("p{}") + "; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'"
	if policy == nil || policy[1] != want {
		t.Errorf("policy %q", policy)
	}
}
