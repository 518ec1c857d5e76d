package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// counter makes the same ids in every test.
func counter() func(string) string {
	n := 0
	return func(prefix string) string { n++; return prefix + strconv.Itoa(n) }
}

// read returns the sessions of an input. It checks the rules for all of them: each
// begins with session.created, ends with session.imported, and can be appended as
// it is.
func read(t testing.TB, format string, r io.Reader, o Options) (sessions [][]tapedeck.Event, d *Decoder, err error) {
	t.Helper()
	if o.NewID == nil {
		o.NewID = counter()
	}
	d, err = NewDecoder(format, r, o)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range d.Events() {
		if err != nil {
			return sessions, d, err
		}
		if e.Type == tapedeck.SessionCreated {
			sessions = append(sessions, nil)
		}
		last := len(sessions) - 1
		e.Offset = int64(len(sessions[last]))
		e.Channel = tapedeck.ChannelOf(e.Type)
		sessions[last] = append(sessions[last], e)
	}
	for _, events := range sessions {
		check(t, events)
	}
	return sessions, d, nil
}

func check(t testing.TB, events []tapedeck.Event) {
	t.Helper()
	v, chunks := order.NewVerifier(), false // chunks have another form in the log
	for i := range events {
		e := &events[i]
		if err := e.Check(); err != nil {
			t.Fatalf("%d %s: %v", i, e.Type, err)
		}
		if err := payload.CheckData(e); err != nil {
			t.Fatalf("%d %s: %v\n%s", i, e.Type, err, e.Data)
		}
		if chunks = chunks || strings.Contains(string(e.Data), `"chunk":true`); chunks {
			if err := v.Add(e); err != nil {
				t.Fatalf("%d %s: %v\n%s", i, e.Type, err, e.Data)
			}
			continue
		}
		out, err := v.Accept([]tapedeck.Event{*e})
		if err != nil {
			t.Fatalf("%d %s: %v\n%s", i, e.Type, err, e.Data)
		}
		if len(out) != 1 || string(out[0].Data) != string(e.Data) {
			t.Fatalf("%d %s is not in the form of the log:\n%s", i, e.Type, e.Data)
		}
		if e.Type == tapedeck.SessionImported != (i == len(events)-1) {
			t.Fatalf("%s is event %d of %d", e.Type, i, len(events))
		}
	}
	if open := v.Runs(); len(open) > 0 {
		t.Fatalf("runs are open at the end: %v", open)
	}
}

func mustRead(t testing.TB, format, in string) ([][]tapedeck.Event, *Decoder) {
	t.Helper()
	sessions, d, err := read(t, format, strings.NewReader(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return sessions, d
}

// fold returns the conversation of a session, which must have nothing open.
func fold(t testing.TB, events []tapedeck.Event) view.Snapshot {
	t.Helper()
	var c view.Conversation
	for i := range events {
		c.Apply(&events[i])
	}
	s := c.Snapshot()
	for _, m := range s.Messages {
		if m.EndOffset == nil {
			t.Errorf("message %s is open at the end", m.ID)
		}
	}
	for _, k := range s.Calls {
		if k.EndOffset == nil {
			t.Errorf("call %s is open at the end: %s", k.ID, k.Status)
		}
	}
	for _, r := range s.Runs {
		if r.EndOffset == nil {
			t.Errorf("run %s is open at the end", r.Invocation)
		}
	}
	if len(s.Notes) > 0 {
		t.Errorf("notes: %+v", s.Notes)
	}
	return s
}

// brief writes events, one per line, without the parts that are equal in most
// tests.
func brief(events []tapedeck.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == tapedeck.SessionImported {
			continue // has a digest
		}
		fmt.Fprintf(&b, "%s", e.Type)
		if e.Thread != "" {
			fmt.Fprintf(&b, " thread=%s", e.Thread)
		}
		if e.Invocation != "" {
			fmt.Fprintf(&b, " %s", e.Invocation)
		}
		if e.Turn != 0 {
			fmt.Fprintf(&b, "/%d", e.Turn)
		}
		if !e.Time.IsZero() {
			fmt.Fprintf(&b, " %s", e.Time.Format("15:04:05"))
		}
		fmt.Fprintf(&b, " %s\n", e.Data)
	}
	return b.String()
}

// TestGolden compares the sessions of testdata/*.jsonl with the file beside each.
// To accept new output, delete that file.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("%d inputs, %v", len(inputs), err)
	}
	for _, path := range inputs {
		t.Run(filepath.Base(path), func(t *testing.T) {
			in, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			format, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".jsonl"), "_")
			format = map[string]string{"openai": OpenAIMessages, "claude": ClaudeCode}[format] + map[string]string{AGUI: AGUI, Asciicast: Asciicast}[format]
			sessions, d := mustRead(t, format, string(in))
			var b strings.Builder
			for _, events := range sessions {
				fold(t, events)
				b.WriteString(brief(events) + "\n")
			}
			for _, s := range d.Skipped() {
				fmt.Fprintf(&b, "line %d: %s\n", s.Line, s.Reason)
			}
			golden(t, strings.TrimSuffix(path, ".jsonl")+".golden", b.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	want, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s was not there and has been written; look at it", path)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := NewDecoder("csv", strings.NewReader(""), Options{})
	if tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Fatal(err)
	}
	hint := err.(*tapedeck.Error).Hint
	for _, f := range Formats() {
		if !strings.Contains(hint, f) {
			t.Errorf("the hint %q does not name %s", hint, f)
		}
	}
}

func TestBadInput(t *testing.T) {
	first := map[string]string{ // the first line of formats that have one
		Asciicast: `{"version":2,"width":80,"height":24}`,
		NDJSON:    `{"tapedeck":1,"session":{"id":"s","head":3}}`,
	}
	const any = `{"type":"user","role":"user","content":"hi","message":{"content":"hi"}}`
	tests := []struct {
		name, in string // GOOD stands for a good first line
		kind     tapedeck.Kind
		says     string
	}{
		{"empty", "", tapedeck.Invalid, "no conversation"},
		{"blank", "\n \r\n\n", tapedeck.Invalid, "no conversation"},
		{"only what is no part of it", `{"a":1}`, tapedeck.Invalid, "line 1"},
		{"not JSON", "hello", tapedeck.Invalid, "line 1 "},
		{"broken later", "GOOD\n\n\n{\"type\":\"us", tapedeck.Invalid, "line 4 "},
		{"first line cut off", `{"role":"user","content":"h` + "\n" + any, tapedeck.Invalid, "line 1 "},
		{"cut off alone", `{"role":"user","content":"h`, tapedeck.Invalid, "line 1 "},
		{"broken document", "[\n{\"role\":\"user\"},\n{]\n]", tapedeck.Invalid, "line 3 "},
		{"not UTF-8", "GOOD\n\"\xff\"", tapedeck.Invalid, "line 2 "},
		{"nested too deep", "GOOD\n" + strings.Repeat("[", 2000) + strings.Repeat("]", 2000), tapedeck.Invalid, "line 2 "},
		{"two values in a line", any + " " + any, tapedeck.Invalid, "line 1 "},
	}
	for _, f := range Formats() {
		for _, tt := range tests {
			t.Run(f+"/"+tt.name, func(t *testing.T) {
				good := first[f]
				if good == "" {
					good = any
				}
				_, _, err := read(t, f, strings.NewReader(strings.ReplaceAll(tt.in, "GOOD", good)), Options{})
				said := fmt.Sprint(err)
				if e := (*tapedeck.Error)(nil); errors.As(err, &e) {
					said = strings.ToLower(said + " " + e.Hint)
				}
				if tapedeck.KindOf(err) != tt.kind || !strings.Contains(said, tt.says) {
					t.Errorf("%v; want %s, saying %q", err, tt.kind, tt.says)
				}
			})
		}
	}
}

func TestTooLong(t *testing.T) {
	line := `{"role":"user","content":"` + strings.Repeat("x", 200) + `"}`
	for _, in := range []string{line, "[\n{\"role\":\"user\"},\n" + line + "\n]"} {
		d, _ := NewDecoder(OpenAIMessages, strings.NewReader(in), Options{})
		d.in.limit = 100
		var last error
		for _, err := range d.Events() {
			last = err
		}
		if tapedeck.KindOf(last) != tapedeck.TooLarge {
			t.Errorf("%v", last)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestReadErrorKeepsItsCause(t *testing.T) {
	_, _, err := read(t, ClaudeCode, io.MultiReader(strings.NewReader("{}\n"), failing{os.ErrDeadlineExceeded}), Options{})
	if tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), "beyond line 1") {
		t.Fatal(err)
	}
	if e := err.(*tapedeck.Error); e.Err != os.ErrDeadlineExceeded {
		t.Errorf("the cause is %v", e.Err)
	}
}

// TestRepeatedRows: a row of Claude Code that repeats an earlier one changes nothing, wherever
// it is. Rows of the same uuid and call that say something else count.
func TestRepeatedRows(t *testing.T) {
	rows := []string{
		`{"type":"user","uuid":"u1","timestamp":"2026-01-05T10:00:00Z","message":{"role":"user","content":"add"}}`,
		`{"type":"assistant","uuid":"a1","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":5,"output_tokens":5}}}`,
		`{"type":"user","uuid":"u2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a file"}]}}`,
		`{"type":"assistant","uuid":"a2","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":9,"output_tokens":2}}}`,
	}
	once, _ := mustRead(t, ClaudeCode, strings.Join(rows, "\n"))
	for name, c := range map[string]struct {
		rows []string
		says string
	}{
		"all twice":                        {append(slices.Clone(rows), rows...), `line 8: it repeats the line with the uuid "a2"`},
		"each twice":                       {[]string{rows[0], rows[0], rows[1], rows[1], rows[2], rows[2], rows[3], rows[3]}, `line 8: it repeats the line with the uuid "a2"`},
		"under another uuid":               {append(slices.Clone(rows), strings.Replace(rows[3], `"a2"`, `"a4"`, 1)), `line 5: it repeats a line of the answer "m2"`},
		"of another usage":                 {append(slices.Clone(rows), strings.Replace(rows[3], `:2}`, `:3}`, 1)), `line 5: it repeats the line with the uuid "a2"`},
		"of another time":                  {append(slices.Clone(rows), strings.Replace(rows[0], "10:00", "11:00", 1)), `line 5: it repeats the line with the uuid "u1"`},
		"the call in an answer of its own": {append(slices.Clone(rows), strings.NewReplacer(`"a1"`, `"a3"`, `"m1"`, `"m3"`).Replace(rows[1])), `line 5: it repeats the call with the id "t1"`},
	} {
		got, d := mustRead(t, ClaudeCode, strings.Join(c.rows, "\n"))
		if diff := cmp.Diff(brief(once[0]), brief(got[0])); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if last := d.Skipped()[len(d.Skipped())-1]; fmt.Sprintf("line %d: %s", last.Line, last.Reason) != c.says {
			t.Errorf("%s: %+v", name, last)
		}
	}
	for name, row := range map[string]string{
		"another message": strings.Replace(rows[3], "Done.", "Done again.", 1), "other arguments": strings.Replace(strings.Replace(rows[1], `"a1"`, `"a3"`, 1), "ls", "pwd", 1),
		"no uuid": `{"type":"user","message":{"role":"user","content":"add"}}`,
	} {
		got, d := mustRead(t, ClaudeCode, strings.Join(append(slices.Clone(rows), row), "\n"))
		if len(got[0]) <= len(once[0]) || len(d.Skipped()) > 0 {
			t.Errorf("%s: %d events, %+v", name, len(got[0]), d.Skipped())
		}
	}
}

func TestSkippedIsBounded(t *testing.T) {
	in := strings.Repeat("42\n", maxSkipped+500) + `{"role":"user","content":"hi"}`
	_, d := mustRead(t, OpenAIMessages, in)
	skipped := d.Skipped()
	if len(skipped) != maxSkipped || !strings.HasSuffix(skipped[maxSkipped-1].Reason, "500 more were left out") {
		t.Errorf("%d, the last %+v", len(skipped), skipped[len(skipped)-1])
	}
	if d.Lines() != maxSkipped+501 {
		t.Errorf("%d lines", d.Lines())
	}
}

// TestHugeLine: a line of 10 MB is imported, its text in parts.
func TestHugeLine(t *testing.T) {
	huge := strings.Repeat("äb", 10<<20/3)
	for format, in := range map[string]string{
		OpenAIMessages: `{"role":"assistant","content":"` + huge + `"}`,
		ClaudeCode:     `{"type":"assistant","message":{"content":[{"type":"text","text":"` + huge + `"}]}}`,
	} {
		sessions, _ := mustRead(t, format, in+"\r\n")
		for _, e := range sessions[0] {
			if len(e.Data) > maxDelta+1000 {
				t.Errorf("%s: a %s of %d bytes", format, e.Type, len(e.Data))
			}
		}
		if s := fold(t, sessions[0]); len(s.Messages) != 1 || s.Messages[0].Text != huge {
			t.Errorf("%s: the text is not what it was", format)
		}
	}
}

func TestLineEndsAndByteOrderMark(t *testing.T) {
	for format, lines := range map[string][]string{
		OpenAIMessages: {`{"role":"user","content":"hi"}`, `{"role":"assistant","content":"ho"}`},
		ClaudeCode:     {`{"type":"user","message":{"content":"hi"}}`, `{"type":"assistant","message":{"content":"ho"}}`},
	} {
		want, _ := mustRead(t, format, strings.Join(lines, "\n"))
		got, _ := mustRead(t, format, "\ufeff"+strings.Join(lines, "\r\n\r\n")+"\r\n")
		if d := cmp.Diff(brief(want[0]), brief(got[0])); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
}

// TestStopping: a consumer that stops gets no more events.
func TestStopping(t *testing.T) {
	in := strings.Repeat(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`+"\n", 5)
	for stop := 1; stop < 12; stop++ {
		d, _ := NewDecoder(OpenAIMessages, strings.NewReader(in), Options{})
		n := 0
		for _, err := range d.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == stop {
				break
			}
		}
	}
}

func TestTitles(t *testing.T) {
	user := `{"type":"user","message":{"content":"  fix\tthe  test\nplease"}}`
	tests := []struct {
		name, format, asked, in string
		want                    []string
	}{
		{"first text", ClaudeCode, "", user, []string{"fix the test"}},
		{"summary after", ClaudeCode, "", user + "\n" + `{"type":"summary","summary":"Tests"}`, []string{"Tests"}},
		{"summary before", ClaudeCode, "", `{"type":"summary","summary":"Tests"}` + "\n" + user, []string{"Tests"}},
		{"given by the user", ClaudeCode, "", `{"type":"custom-title","customTitle":"Mine"}` + "\n" + user + "\n" + `{"type":"summary","summary":"Tests"}`, []string{"Mine"}},
		{"asked for", ClaudeCode, "Yours", user + "\n" + `{"type":"summary","summary":"Tests"}`, []string{"Yours"}},
		{"not from a meta line", ClaudeCode, "", `{"type":"user","isMeta":true,"message":{"content":"Caveat"}}` + "\n" + user, []string{"fix the test"}},
		{"long", OpenAIMessages, "", `{"role":"user","content":"` + strings.Repeat("ä", 5000) + `"}`, []string{strings.Repeat("ä", 79) + "…"}},
		{"with a control character", OpenAIMessages, "", `{"role":"user","content":"a\u0007b"}`, []string{"a b"}},
		{"of a conversation", OpenAIMessages, "", `{"title":"Mine","messages":[{"role":"user","content":"a"}]}` + "\n" + `{"title":"Other","traj":[{"role":"user","content":"b"}]}`, []string{"Mine", "Other"}},
		{"of conversations in a document", OpenAIMessages, "", `[{"title":"Mine","messages":[{"role":"user","content":"a"}]},{"title":7,"messages":[{"role":"user","content":"b"}]}]`, []string{"Mine", "b"}},
		{"of a conversation, and one is asked for", OpenAIMessages, "T", `{"title":"Mine","messages":[{"role":"user","content":"a"}]}`, []string{"T"}},
		{"after a message that is left out", OpenAIMessages, "", `[{"role":"user"},{"role":"user","content":"b"}]`, []string{"b"}},
		{"several", OpenAIMessages, "T", `[{"role":"user","content":"a"}]` + "\n" + `[{"role":"user","content":"b"}]`, []string{"T", "T (2)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sessions, _, err := read(t, tt.format, strings.NewReader(tt.in), Options{Title: tt.asked})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, events := range sessions {
				got = append(got, fold(t, events).Session.Title)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestForReading: an input that is an export for reading, or nothing that can be imported, is
// refused with what it is and with what can be imported.
func TestForReading(t *testing.T) {
	for name, tt := range map[string]struct{ in, want, hint string }{
		"html":             {"<!doctype html>\n<html>", "the input is an HTML page, which is for reading", "export the session as ndjson"},
		"html of others":   {"\n<HTML lang=en>", "the input is an HTML page, which is for reading", "export the session as ndjson"},
		"csv":              {strings.Join(csvColumns, ",") + "\n0,1,2\n", "the input is an export of the format csv, which is for reading", "export the session as ndjson"},
		"markdown":         {"# A title\n\n`ses_1` · today\n", "the input is Markdown, which is for reading", "export the session as ndjson"},
		"one document":     {`{"tapedeck":1,"session":{"id":"s","head":1},"events":[` + "\n" + `{"offset":0,"type":"session.created","data":{}}` + "\n]}\n", "line 1 of the input is an export as one JSON document", "export the session as ndjson"},
		"something else":   {"hello", "line 1 of the input is not JSON", "the formats are: agui, asciicast, claude-code, ndjson, openai-messages"},
		"a table":          {"role,content\nuser,hi\n", "line 1 of the input is not JSON", "the formats are: agui, asciicast, claude-code, ndjson, openai-messages"},
		"Latin 1":          {`{"role":"user","content":"caf` + "\xe9" + `"}`, "line 1 of the input is not UTF-8", "convert the file"},
		"a broken line":    {`{"role":"user","content":"hi"}` + "\n# why\n" + `{"role":"us`, "line 3 of the input is not JSON", "leave it out"},
		"a broken first":   {`{"role":"user","cont` + "\n" + `{"role":"user","content":"hi"}`, "line 1 of the input is not JSON", "leave it out"},
		"a gap":            {`{"tapedeck":1,"session":{"id":"s","head":3}}` + "\n" + `{"offset":1,"type":"session.created","data":{}}`, "line 2 of the input: has offset 1 instead of 0", "the file was changed"},
		"not of an export": {`{"tapedeck":1,"session":{"id":"s","head":3}}` + "\n" + `{"a":1}`, "line 2 of the input is neither the header of an export nor an event", "the file was changed"},
		"a run that ends":  {`{"offset":0,"type":"session.created","data":{}}` + "\n" + `{"offset":1,"type":"RUN_FINISHED","data":{"threadId":"main","runId":"r"}}`, "line 2 of the input", "the file was changed"},
	} {
		_, _, err := read(t, Auto, strings.NewReader(tt.in), Options{})
		var e *tapedeck.Error
		if !errors.As(err, &e) || e.Kind != tapedeck.Invalid || !strings.HasPrefix(e.Message, tt.want) || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestOtherFormat: an input in another format than the named one is refused with both. Files
// that the named format can partly read are refused only if it finds nothing in them.
func TestOtherFormat(t *testing.T) {
	ours := `{"offset":0,"type":"session.created","data":{}}` + "\n" + `{"offset":1,"type":"RUN_STARTED","data":{"threadId":"main","runId":"r"}}`
	inputs := map[string][]string{
		NDJSON:         {`{"tapedeck":1,"session":{"id":"s","head":2}}` + "\n" + ours, `{"tapedeck":1,"session":{"id":"s","head":2},"events":[` + strings.ReplaceAll(ours, "\n", ",") + `]}`},
		Asciicast:      {`{"version":2,"width":80,"height":24}` + "\n" + `[0.1,"o","hi"]`},
		AGUI:           {`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`},
		OpenAIMessages: {`{"role":"user","content":"hi"}`, `[{"role":"user","content":"hi"}]`},
		ClaudeCode:     {`{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hi"}}`},
	}
	for is, files := range inputs {
		for _, in := range files {
			for _, named := range Formats() {
				_, _, err := read(t, named, strings.NewReader(in), Options{})
				if named == is {
					continue // other tests read it
				}
				var e *tapedeck.Error
				want := "the input is not in the format " + named + "; it seems to be " + is
				if !errors.As(err, &e) || e.Kind != tapedeck.Invalid || e.Message != want || !strings.Contains(e.Hint, is) {
					t.Errorf("%s as %s: %v", in, named, err)
				}
			}
		}
	}
}

// TestMessagesWithoutContent: a message that says nothing is left out, with its line and the
// reason; what OpenAI's format allows is kept.
func TestMessagesWithoutContent(t *testing.T) {
	for in, want := range map[string]string{
		`{"role":"user"}`:                                              `the message has the role "user" and no content`,
		`{"role":"user","content":null}`:                               `the message has the role "user" and no content`,
		`{"role":"system"}`:                                            `the message has the role "system" and no content`,
		`{"role":"developer","content":null}`:                          `the message has the role "developer" and no content`,
		`{"role":"tool","tool_call_id":"c"}`:                           `the message has the role "tool" and no content`,
		`{"role":"assistant"}`:                                         `the message has the role "assistant" and no content`,
		`{"role":"bot","content":"x"}`:                                 `the message has the role "bot"; the roles are system, developer, user, assistant, tool and function`,
		`{"messages":[{"role":"user"},{"role":"user","content":"x"}]}`: `message 1 has the role "user" and no content`,

		`{"role":"user","content":5}`:                                              `the message has the role "user" and a content that is neither a text nor a list of parts`,
		`{"role":"system","content":true}`:                                         `the message has the role "system" and a content that is neither a text nor a list of parts`,
		`{"role":"assistant","content":{"a":1}}`:                                   `the message has the role "assistant" and a content that is neither a text nor a list of parts`,
		`{"role":"user","content":["a",5]}`:                                        `the message has the role "user" and a content whose part 2 is neither a text nor an object`,
		`{"messages":[{"role":"user","content":5},{"role":"user","content":"x"}]}`: `message 1 has the role "user" and a content that is neither a text nor a list of parts`,

		`{"role":"user","content":["a"]}`:      "",
		`{"role":"tool","content":5}`:          "",
		`{"role":"user","content":""}`:         "",
		`{"role":"assistant","content":null}`:  "",
		`{"role":"assistant","refusal":"no"}`:  "",
		`{"role":"assistant","reasoning":"r"}`: "",
		`{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}`:                "",
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}`: "",
		`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`:                                     "",
		`{"role":"function","name":"f","content":null}`:                                                          "",
	} {
		_, d := mustRead(t, OpenAIMessages, `{"role":"user","content":"hi"}`+"\n"+in)
		var skipped []api.LineError
		if want != "" {
			skipped = []api.LineError{{Line: 2, Reason: want}}
		}
		if diff := cmp.Diff(skipped, d.Skipped()); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestImportedSaysWhatItWas(t *testing.T) {
	in := `{"role":"user","content":"hi"}` + "\n\n" + `{"role":"assistant","content":"ho"}` + "\n"
	sessions, _, err := read(t, OpenAIMessages, strings.NewReader(in), Options{Owner: "ada", Actor: "user:ada"})
	if err != nil {
		t.Fatal(err)
	}
	events := sessions[0]
	first, last := events[0], events[len(events)-1]
	if first.Actor != "user:ada" || last.Actor != "user:ada" || fold(t, events).Session.Owner != "ada" {
		t.Errorf("%s %s", first.Data, last.Data)
	}
	var d struct {
		Format, Digest string
		Lines, Events  int
	}
	if err := json.Unmarshal(last.Data, &d); err != nil {
		t.Fatal(err)
	}
	if d.Format != OpenAIMessages || d.Lines != 2 || d.Events != len(events)-2 || !strings.HasPrefix(d.Digest, "sha256:") {
		t.Errorf("%+v of %d events", d, len(events))
	}
}
