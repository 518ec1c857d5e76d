package exchange

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/view"
)

// source returns a source of events.
func source(events []tapedeck.Event) Source {
	s := tapedeck.Session{ID: "ses_1", Kind: tapedeck.KindSession, Title: "A title", Created: events[0].Time, Status: tapedeck.StatusIdle}
	var jumps []tapedeck.Jump
	for i := range events {
		s.Apply(&events[i])
		if j, ok := events[i].Jump(); ok {
			jumps = append(jumps, j)
		}
	}
	s.Head = int64(len(events))
	return Source{Session: s, Timeline: view.NewTimeline(jumps), Player: testPlayer, Now: events[0].Time.Add(time.Hour), Events: func() iter.Seq2[tapedeck.Event, error] {
		return func(yield func(tapedeck.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}
	}}
}

func export(t testing.TB, format string, src Source) string {
	t.Helper()
	x, err := Encode(format, src)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := x.Write(&b); err != nil {
		t.Fatal(err)
	}
	if format == HTML {
		return unpacked(t, b.String())
	}
	return b.String()
}

// imported returns the sessions of an input, with their offsets.
func imported(format, in string, o Options) (sessions [][]tapedeck.Event, entries []tapedeck.Session, err error) {
	d, err := NewDecoder(format, strings.NewReader(in), o)
	if err != nil {
		return nil, nil, err
	}
	for e, err := range d.Events() {
		if err != nil {
			return sessions, entries, err
		}
		if entry, starts := d.Starts(); starts {
			sessions, entries = append(sessions, nil), append(entries, entry)
		}
		last := &sessions[len(sessions)-1]
		e.Offset, e.Channel = int64(len(*last)), tapedeck.ChannelOf(e.Type)
		if e.Channel == "" {
			e.Channel = tapedeck.ChannelAgentState
		}
		*last = append(*last, e)
	}
	return sessions, entries, nil
}

// talk is a session with events of nearly every kind.
var talk = []string{
	`session.created {"title":"A title"}`,
	`message.added {"message":{"id":"u1","role":"user","content":"=cmd|' /C calc'!A0"}}`,
	`RUN_STARTED {"threadId":"main","runId":"inv_1"}`,
	`REASONING_MESSAGE_START {"messageId":"t1","role":"reasoning"}`,
	`REASONING_MESSAGE_CONTENT {"messageId":"t1","delta":"hm </details><script>"}`,
	`REASONING_MESSAGE_END {"messageId":"t1"}`,
	`TEXT_MESSAGE_START {"messageId":"a1","role":"assistant"}`,
	`TEXT_MESSAGE_CONTENT {"messageId":"a1","delta":"Look:\n` + "```" + `go\nx < y\n","cuts":[[5,0],[13,7]]}`,
	`TOOL_CALL_START {"toolCallId":"c1","toolCallName":"Read` + "`" + `x","parentMessageId":"a1"}`,
	`TOOL_CALL_ARGS {"toolCallId":"c1","delta":"{\"path\":\"a` + "```" + `b\"}"}`,
	`TOOL_CALL_END {"toolCallId":"c1"}`,
	`TEXT_MESSAGE_CONTENT {"messageId":"a1","delta":"<img src=x>\u001b[2J"}`,
	`TEXT_MESSAGE_END {"messageId":"a1"}`,
	`TOOL_CALL_RESULT {"messageId":"r1","toolCallId":"c1","content":"` + "````\\n# no heading\\n```" + `","metadata":{"tapedeck":{"error":true}}}`,
	`plan.updated {"entries":[{"content":"one *star*","status":"completed"},{"content":"two","status":"pending"}]}`,
	`TOOL_CALL_START {"toolCallId":"c2","toolCallName":"Bash"}`,
	`TOOL_CALL_END {"toolCallId":"c2"}`,
	`RUN_FINISHED {"threadId":"main","runId":"inv_1","outcome":{"type":"cancelled"}}`,
	`terminal.resize {"terminal":"t1","cols":100,"rows":30}`,
	`terminal.output {"terminal":"t1","data":"$ ls\r\n","cuts":[[2,0],[4,250]]}`,
	`terminal.input {"terminal":"t1","data":"x"}`,
	`terminal.resize {"terminal":"t1","cols":90,"rows":20}`,
	`terminal.exit {"terminal":"t1","code":0}`,
}

func TestExportGolden(t *testing.T) {
	for _, format := range ExportFormats() {
		golden(t, "testdata/export."+format, export(t, format, source(log(talk...))))
	}
}

// rewound is talk with further turns, some of which were reverted.
func rewound() []tapedeck.Event {
	return log(append(slices.Clone(talk),
		`session.rewound {"marker":"mk1","toOffset":1}`,
		`message.added {"message":{"id":"u2","role":"user","content":"again"}}`,
		`session.rewound {"marker":"mk2","toOffset":23,"previous":23,"undoes":"mk1"}`,
		`acme.note {"n":1}`,
	)...)
}

func TestNDJSONKeepsAll(t *testing.T) {
	events := rewound()
	file := export(t, NDJSON, source(events))
	sessions, entries, err := imported(NDJSON, file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sessions) != 1 || entries[0].ID != "ses_1" || entries[0].Head != int64(len(events)) {
		t.Fatalf("%d %+v", len(sessions), entries)
	}
	if d := cmp.Diff(events, sessions[0]); d != "" {
		t.Error(d)
	}
	if again := export(t, NDJSON, source(sessions[0])); again != file {
		t.Errorf("exported again: %s", cmp.Diff(file, again))
	}
	if n := strings.Count(file, "\n"); n != len(events)+1 {
		t.Errorf("%d lines", n)
	}
}

func TestNDJSONSeveral(t *testing.T) {
	file := export(t, NDJSON, source(rewound()))
	headless := file[strings.Index(file, "\n")+1:]
	for name, in := range map[string]string{"with headers": file + file, "without": headless + headless, "mixed": headless + file} {
		sessions, _, err := imported(Auto, in, Options{})
		if err != nil || len(sessions) != 2 || len(sessions[0]) != len(sessions[1]) {
			t.Errorf("%s: %d sessions, %v", name, len(sessions), err)
		}
	}
	sessions, _, err := imported(NDJSON, file, Options{Title: "Mine", Owner: "bob", Actor: "user:bob"})
	if err != nil {
		t.Fatal(err)
	}
	s := source(sessions[0]).Session
	if last := sessions[0][len(sessions[0])-1]; s.Title != "Mine" || s.Owner != "bob" || last.Type != tapedeck.SessionImported || last.Actor != "user:bob" {
		t.Errorf("%+v", s)
	}
}

func TestNDJSONRefuses(t *testing.T) {
	file := export(t, NDJSON, source(log(talk...)))
	lines := strings.SplitAfter(file, "\n")
	edit := func(f func(l []string) []string) string { return strings.Join(f(slices.Clone(lines)), "") }
	for name, tt := range map[string]struct{ in, says string }{
		"cut off":          {edit(func(l []string) []string { return l[:len(l)-3] }), "ends after 21 events of session ses_1, which has 23"},
		"a gap":            {edit(func(l []string) []string { return slices.Delete(l, 5, 6) }), "line 6 of the input: has offset 5 instead of 4"},
		"twice":            {edit(func(l []string) []string { return slices.Insert(l, 5, l[4]) }), "line 6 "},
		"no event":         {edit(func(l []string) []string { l[5] = "{\"a\":1}\n"; return l }), "line 6 of the input is neither"},
		"a strange member": {edit(func(l []string) []string { l[5] = strings.Replace(l[5], `"type"`, `"x":1,"type"`, 1); return l }), "line 6 "},
		"bad order": {edit(func(l []string) []string {
			l[3] = strings.Replace(l[3], "RUN_STARTED", "TEXT_MESSAGE_END", 1)
			return l
		}), "line 4 "},
		"another version":        {strings.Replace(file, `"tapedeck":1`, `"tapedeck":2`, 1), "version 2"},
		"a JSON export":          {export(t, JSON, source(log(talk...))), "as one JSON document"},
		"nothing but a header":   {lines[0], "ends after 0 events"},
		"an odd title elsewhere": {strings.Replace(strings.Replace(file, `"channel":"session"`, `"channel":"chunks"`, 1), `"data":{"title":"A title"}`, `"data":{"title":"A\u0007"}`, 1), "line 2 "},
		"an odd title":           {strings.Replace(file, `"data":{"title":"A title"}`, `"data":{"title":"A\u0007"}`, 1), "line 2 "},
		"begins late":            {strings.Join(lines[3:], ""), "line 1 "},
	} {
		_, _, err := imported(NDJSON, tt.in, Options{})
		if tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEffective: reverted events are not in an effective export. It can be
// imported, also if the rewind went into a run.
func TestEffective(t *testing.T) {
	events := log(append(slices.Clone(talk[:12]),
		`session.rewound {"marker":"mk","toOffset":9}`,
		`RUN_STARTED {"threadId":"main","runId":"inv_1"}`,
		`RUN_FINISHED {"threadId":"main","runId":"inv_1"}`)...)
	events[13].Invocation, events[14].Invocation = "inv_2", "inv_2"
	events[13].Data, events[14].Data = []byte(`{"threadId":"main","runId":"inv_2"}`), []byte(`{"threadId":"main","runId":"inv_2"}`)
	src := source(events)
	src.Effective = true
	file := export(t, NDJSON, src)
	if strings.Contains(file, "session.rewound") || strings.Contains(file, `"offset":9,`) || !strings.Contains(file, `"view":"effective"`) {
		t.Error(file)
	}
	sessions, _, err := imported(Auto, file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := order.NewVerifier()
	for _, e := range sessions[0] {
		if err := v.Add(&e); err != nil {
			t.Errorf("offset %d: %v", e.Offset, err)
		}
	}
	if len(v.Runs()) > 0 {
		t.Error("a run is open")
	}
	c, err := view.Fold(source(sessions[0]).Events(), nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Snapshot(); len(s.Runs) != 2 || s.Runs[0].Status != tapedeck.StatusInterrupted || len(s.Calls) != 1 || s.Calls[0].Arguments != "" {
		t.Errorf("%+v", s)
	}
}

// TestJSONHasTheSnapshot: the snapshot shows the active events, whichever events
// are exported.
func TestJSONHasTheSnapshot(t *testing.T) {
	midrun := log(append(slices.Clone(talk[:12]), `session.rewound {"marker":"mk","toOffset":9}`, `acme.note {}`)...)
	for name, events := range map[string][]tapedeck.Event{"rewound": rewound()[:25], "undone": rewound(), "into a run": midrun} {
		for _, effective := range []bool{false, true} {
			src := source(events)
			src.Effective = effective
			var doc struct {
				Session  struct{ ID string }
				Events   []tapedeck.Event
				Snapshot json.RawMessage
			}
			if err := json.Unmarshal([]byte(export(t, JSON, src)), &doc); err != nil {
				t.Fatal(err)
			}
			c, err := view.Fold(src.Events(), src.Timeline, src.Session.Head)
			if err != nil {
				t.Fatal(err)
			}
			s := c.Snapshot()
			s.Session.ID = "ses_1"
			want, err := marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(doc.Snapshot)); d != "" && !effective {
				t.Errorf("%s: %s", name, d)
			}
			if doc.Session.ID != "ses_1" || !effective && len(doc.Events) != len(events) || effective && len(doc.Events) >= len(events) {
				t.Errorf("%s: %d events", name, len(doc.Events))
			}
		}
	}
}

func TestCSV(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(export(t, CSV, source(log(talk...))))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(talk)+1 || strings.Join(rows[0], ",") != "offset,timestamp,channel,type,thread,invocation,instance,turn,actor,text,data" {
		t.Errorf("%d rows, %v", len(rows), rows[0])
	}
	if rows[2][9] != "'=cmd|' /C calc'!A0" {
		t.Errorf("%q", rows[2][9])
	}
	for _, cell := range []string{"=1", "+1", "-1", "@x", "\t=1", " =1", "\r\n=1", "＝1"} {
		if got := harmless(cell); got != "'"+cell {
			t.Errorf("%q became %q", cell, got)
		}
	}
	for _, cell := range []string{"", "a=1", "1-1", "{}"} {
		if got := harmless(cell); got != cell {
			t.Errorf("%q became %q", cell, got)
		}
	}
}

func TestCastOfSeveral(t *testing.T) {
	events := log(`session.created {}`, `terminal.output {"terminal":"a","data":"1"}`, `terminal.output {"terminal":"b","data":"2"}`, `terminal.resize {"terminal":"b","cols":5,"rows":6}`)
	events[3].Time = events[0].Time // a clock that was set back
	src := source(events)
	_, err := Encode(Asciicast, src)
	if e := (*tapedeck.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Hint, "a, b") {
		t.Errorf("%v", err)
	}
	src.Terminal = "c"
	if _, err := Encode(Asciicast, src); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("%v", err)
	}
	src.Terminal = "b"
	want := `{"version":2,"width":80,"height":24,"timestamp":1767607202,"title":"A title"}` + "\n[0, \"o\", \"2\"]\n[0, \"r\", \"5x6\"]\n"
	if got := export(t, Asciicast, src); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, err := Encode(Asciicast, source(events[:1])); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("%v", err)
	}
}

// TestCastBothWays: a recording that is imported and exported is the same again.
func TestCastBothWays(t *testing.T) {
	in := "{\"version\":2,\"width\":80,\"height\":24,\"timestamp\":1767607200,\"title\":\"A title\"}\n[0.1, \"o\", \"a\\r\\n\"]\n[0.25, \"i\", \"x\"]\n[1.5, \"r\", \"100x50\"]\n[1.5, \"m\", \"see\"]\n[2, \"o\", \"\\u001b[0m<&>\"]\n"
	sessions, _, err := imported(Auto, in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := export(t, Asciicast, source(sessions[0])); got != in {
		t.Errorf("got\n%swant\n%s", got, in)
	}
}

// A bookmark is at the event that it marks, however late it was set.
func TestCastHasBookmarks(t *testing.T) {
	src := source(log(
		`terminal.output {"terminal":"t","data":"a"}`, `terminal.output {"terminal":"t","data":"b"}`,
		`bookmark.added {"offset":1,"label":"late"}`, `bookmark.added {"offset":0,"label":"before it begins"}`,
		`terminal.output {"terminal":"t","data":"c"}`,
	))
	var got []string
	for line := range strings.Lines(export(t, Asciicast, src)) {
		if _, ev, ok := strings.Cut(line, ", "); ok && strings.HasPrefix(line, "[") {
			got = append(got, strings.TrimSuffix(ev, "]\n"))
		}
	}
	if want := []string{`"o", "a"`, `"m", "late"`, `"o", "b"`, `"o", "c"`}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The times of a cast are those of the recording: what happens to the session itself, and
// the time between runs, is left out. Without any times the events follow each other.
func TestCastIsInRecordingTime(t *testing.T) {
	events := log(
		`RUN_STARTED {"threadId":"main","runId":"inv_1"}`, `terminal.output {"terminal":"t","data":"a"}`, `RUN_FINISHED {"threadId":"main","runId":"inv_1"}`,
		`session.renamed {"title":"B"}`, `RUN_STARTED {"threadId":"main","runId":"inv_1"}`, `terminal.output {"terminal":"t","data":"b"}`,
		`bookmark.added {"offset":5,"label":"here"}`, `terminal.output {"terminal":"t","data":"c"}`,
	)
	events[3].Time = events[0].Time.AddDate(1, 0, 0)
	for i := 4; i < len(events); i++ {
		events[i].Time = events[i].Time.AddDate(0, 0, 7)
	}
	times := func() (out []string) {
		for line := range strings.Lines(export(t, Asciicast, source(events))) {
			if strings.HasPrefix(line, "[") {
				out = append(out, strings.TrimSpace(line))
			}
		}
		return out
	}
	if got, want := times(), []string{`[0, "o", "a"]`, `[2, "m", "here"]`, `[2, "o", "b"]`, `[4, "o", "c"]`}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range events {
		events[i].Time = events[0].Time
	}
	if got, want := times(), []string{`[0, "o", "a"]`, `[0.2, "m", "here"]`, `[0.2, "o", "b"]`, `[0.4, "o", "c"]`}; !slices.Equal(got, want) {
		t.Errorf("without times: got %v, want %v", got, want)
	}
}

func TestMarkdownOfWhatWasErased(t *testing.T) {
	events := log(talk...)
	for i := range events {
		b, err := json.Marshal(events[i])
		if err != nil {
			t.Fatal(err)
		}
		rec, err := store.EraseRecord(tapedeck.Record{Offset: events[i].Offset, Data: b})
		if err != nil {
			t.Fatal(err)
		}
		if events[i], err = rec.Event(); err != nil {
			t.Fatal(err)
		}
	}
	out := export(t, Markdown, source(events))
	if n := strings.Count(out, erased); n < 3 || strings.Contains(out, erased+erased) || strings.Contains(out, "``") && strings.Contains(out, "### Tool `") {
		t.Errorf("%d times in %s", n, out)
	}
}

func TestExportRedacts(t *testing.T) {
	for _, format := range ExportFormats() {
		events := log(append(slices.Clone(talk), `CUSTOM {"name":"x","value":{"token":"abcd"}}`, `message.added {"message":{"id":"u9","role":"user","content":"abcd"}}`, `terminal.output {"terminal":"t1","data":"abcd"}`)...)
		src := source(events)
		src.Session.Title = "abcd"
		src.Redactor = redactor(t, api.Redaction{Patterns: []string{"abcd"}, Keys: []string{"token"}})
		if out := export(t, format, src); strings.Contains(out, "abcd") || !strings.Contains(out, api.Redacted[1:9]) {
			t.Errorf("%s: %s", format, out)
		}
	}
	src := source(log(talk...))
	p, err := Preview(src)
	if err != nil || p.Events != 0 {
		t.Errorf("%+v %v", p, err)
	}
}

// TestExportFails: an error of the log or of the file ends the export.
func TestExportFails(t *testing.T) {
	broken := errors.New("broken")
	for _, format := range ExportFormats() {
		src := source(log(talk...))
		all, reads := src.Events, 0
		src.Events = func() iter.Seq2[tapedeck.Event, error] {
			reads++
			return func(yield func(tapedeck.Event, error) bool) {
				for e, err := range all() {
					if e.Offset == 20 && (format != Asciicast && format != HTML || reads > 1) {
						err = broken
					}
					if !yield(e, err) {
						return
					}
				}
			}
		}
		x, err := Encode(format, src)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Write(&bytes.Buffer{}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", format, err)
		}
		x, _ = Encode(format, source(log(talk...)))
		if err := x.Write(failingWriter{broken}); !errors.Is(err, broken) {
			t.Errorf("%s, into a broken file: %v", format, err)
		}
	}
	if _, err := Encode("html5", source(log(talk...))); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("%v", err)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// TestTranscriptIsBounded: an entry that does not end cannot delay later entries
// forever.
func TestTranscriptIsBounded(t *testing.T) {
	var lines []string
	lines = append(lines, `session.created {}`, `TOOL_CALL_START {"toolCallId":"c","toolCallName":"Slow"}`)
	for range 3 * maxHeld {
		lines = append(lines, `TEXT_MESSAGE_START {"messageId":"m"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"x"}`, `TEXT_MESSAGE_END {"messageId":"m"}`)
	}
	lines = append(lines, `TOOL_CALL_RESULT {"messageId":"r","toolCallId":"c","content":"at last"}`)
	tr := newTranscript(&output{bufio.NewWriter(io.Discard)})
	for _, e := range log(lines...) {
		tr.event(&e)
		if len(tr.held) > maxHeld+2 || len(tr.open) > maxHeld+2 {
			t.Fatalf("%d are held", len(tr.held))
		}
	}
	out := export(t, Markdown, source(log(lines...)))
	if strings.Count(out, "> x") != 3*maxHeld || strings.Count(out, "at last") != 1 || strings.Count(out, "Slow") != 1 {
		t.Error("something is missing, or there twice")
	}
}

func TestAuto(t *testing.T) {
	for in, want := range map[string]string{
		`{"tapedeck":1}`:                                 NDJSON,
		`{"offset":0,"type":"session.created"}`:          NDJSON,
		`{"version": 2, "width": 80, "height": 24}`:      Asciicast,
		`{"version": 3, "term": {"cols": 1, "rows": 1}}`: Asciicast,
		`{"messages":[]}`:                                OpenAIMessages,
		`[{"role":"user"}]`:                              OpenAIMessages,
		`[[{"role":"user"}]]`:                            OpenAIMessages,
		`{"type":"user","uuid":"u","message":{}}`:        ClaudeCode,
		`{"type":"summary","summary":"s"}`:               ClaudeCode,
		`{"loglines":[]}`:                                ClaudeCode,
		`{"type":"RUN_STARTED","runId":"r"}`:             AGUI,
		`[{"type":"RUN_STARTED"}]`:                       AGUI,
		`[]`:                                             "", `{}`: "", `5`: "", `{"type":5}`: "",
	} {
		if got := formatOf([]byte(in)); got != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
	}
	if _, _, err := imported(Auto, `{"a":1}`, Options{}); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("%v", err)
	}
}

// TestAGUIForms: one log as lines, as an array and as Server-Sent Events.
func TestAGUIForms(t *testing.T) {
	lines := []string{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"hi"}`, `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`}
	var want string
	for i, in := range []string{
		strings.Join(lines, "\n"),
		"[\n" + strings.Join(lines, ",\n") + "\n]",
		": hello\n\nid: 1\nevent: message\ndata: " + strings.Join(lines, "\n\ndata:") + "\n\ndata: [DONE]\n\n",
		"\ufeff: hello\r\rid: 1\revent: message\rdata: " + strings.Join(lines, "\r\rdata:") + "\r\rdata: [DONE]\r\r",
	} {
		for _, format := range []string{AGUI, Auto} {
			sessions, _, err := imported(format, in, Options{NewID: counter(), Now: time.Now})
			if err != nil || len(sessions) != 1 {
				t.Fatalf("%s %d: %v", format, i, err)
			}
			got := brief(sessions[0])
			if want == "" {
				want = got
			}
			if got != want || strings.Count(got, "\n") != 6 {
				t.Errorf("%s\nwant %s", got, want)
			}
		}
	}
}
