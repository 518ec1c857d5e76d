package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

func testEnvelopes(t *testing.T, open opener) {
	testBadEvents(t, open)
	t.Run("the record is the envelope", func(t *testing.T) { testEnvelope(t, start(t, open)) })
	t.Run("bytes come back as they were", func(t *testing.T) { testBytes(t, start(t, open)) })
	t.Run("every event is folded", func(t *testing.T) { testFold(t, start(t, open)) })
}

// testBadEvents checks that a bad event makes its append fail, and no other.
func testBadEvents(t *testing.T, open opener) {
	for name, bad := range map[string]tapedeck.Event{
		"no type":             {},
		"a type with a slash": {Type: "../x"},
		"a long thread":       {Type: "CUSTOM", Thread: strings.Repeat("x", maxIDLen+1)},
		"data is no JSON":     {Type: "CUSTOM", Data: []byte(`{"a":`)},
		"data is no object":   {Type: "CUSTOM", Data: []byte(`[1]`)},
		"data is no UTF-8":    {Type: "CUSTOM", Data: []byte("{\"a\":\"\xff\"}")},
		"a NUL byte":          {Type: "CUSTOM", Actor: "a\x00b"},
		"a negative turn":     {Type: "CUSTOM", Turn: -1},
		"a year of 5 digits":  {Type: "CUSTOM", Time: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		play(t, open, "bad event/"+name, create("a"), write("a", 2),
			write("a", 3, events(bad), fails(tapedeck.Invalid)),
			write("a", 0, events(bad), closing(), by("w", 0, 0), fails(tapedeck.Invalid)),
			create("b", spec("with a bad event", func(s *tapedeck.Spec) { s.Events = []tapedeck.Event{event("x"), bad} }),
				failing(tapedeck.Invalid)),
			is("b", tapedeck.NotFound),
			write("a", 1, by("w", 0, 0)))
	}
}

// testEnvelope checks that a record is, byte for byte, the envelope of the appended
// event, with the members that the store sets.
func testEnvelope(t *testing.T, w *world) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 890_123_456, time.FixedZone("", 3600))
	w.play(create("a"), write("a", 2))
	given := []tapedeck.Event{
		{Offset: 77, Type: "TEXT_MESSAGE_CONTENT", Channel: "wrong", Time: at, Thread: "main", Data: []byte(" {\n\"delta\" : \"<é>\\n\"}")},
		{Type: "acme.thing", Channel: "custom", Thread: "t", Invocation: "i", Instance: "n", Turn: 3, Actor: "user:ada <a&b>", Time: at},
		{Type: "CUSTOM", Data: []byte(`{"big":"` + strings.Repeat("x", 100_000) + `"}`), Time: at},
	}
	got := must(w.Append(w.ctx, tapedeck.Append{Session: "a", Events: given}))(t)
	if d := cmp.Diff(tapedeck.Appended{First: 2, Next: 5, Head: 5}, got); d != "" {
		t.Fatalf("append: (-want +got)\n%s", d)
	}
	want := []string{
		`{"offset":2,"type":"TEXT_MESSAGE_CONTENT","channel":"chunks","timestamp":"2026-03-04T04:06:07.890Z","data":{"delta":"<é>\n"}}`,
		`{"offset":3,"type":"acme.thing","channel":"custom","timestamp":"2026-03-04T04:06:07.890Z","thread":"t","invocation":"i",` +
			`"instance":"n","turn":3,"actor":"user:ada \u003ca\u0026b\u003e"}`,
		`{"offset":4,"type":"CUSTOM","channel":"agentState","timestamp":"2026-03-04T04:06:07.890Z","data":{"big":"` + strings.Repeat("x", 100_000) + `"}}`,
	}
	check := func() {
		t.Helper()
		for i, r := range must(w.Read(w.ctx, "a", tapedeck.Range{From: 2}))(t).Records {
			if d := cmp.Diff(want[i], string(r.Data)); d != "" {
				t.Errorf("record %d: (-want +got)\n%s", i+2, d)
			}
		}
	}
	check()
	if w.Reopen != nil {
		w.play(reopen())
		check()
	}
}

// testBytes checks that a stream keeps any bytes, also an empty chunk.
func testBytes(t *testing.T, w *world) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	want := []string{string(all), "", "\x00", "a\nb\r\n", ""}
	w.play(create("stream/a/ä b?"), write("stream/a/ä b?", 0, chunks(want[:4]...), accepting(want[:4])))
	must(w.Append(w.ctx, tapedeck.Append{Session: "stream/a/ä b?", Chunks: [][]byte{nil}}))(t)
	w.session("stream/a/ä b?").texts = want
	w.play(readAll())
	if w.Reopen != nil {
		w.play(reopen(), readAll())
	}
}

// accepting sets the texts of an append whose records another option sets.
func accepting(texts []string) option {
	return option{"", func(_ *world, a *writing) { a.texts = texts }}
}

// testFold checks that the entry is the fold of the session's events.
func testFold(t *testing.T, w *world) {
	at := time.Date(2026, 7, 1, 13, 0, 0, 0, time.UTC)
	run := func(typ, invocation string, data string) tapedeck.Event {
		at = at.Add(time.Second)
		return tapedeck.Event{Type: typ, Invocation: invocation, Thread: "t-" + invocation, Time: at, Data: []byte(data)}
	}
	done, err := w.Create(w.ctx, tapedeck.Spec{ID: "a", Kind: tapedeck.KindSession, Events: []tapedeck.Event{
		run(tapedeck.SessionCreated, "", `{"title":"One","owner":"ada","agent":"coder","labels":{"k":"v"}}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	made := done.Session
	for i, batch := range [][]tapedeck.Event{
		{run("RUN_STARTED", "i1", `{"metadata":{"tapedeck":{"owner":"e1"}}}`), run("CUSTOM", "i1", `{}`), run("RUN_STARTED", "i2", `{}`)},
		{run("RUN_FINISHED", "i1", `{}`), run(tapedeck.SessionRenamed, "", `{"title":"Two"}`)},
		{run("RUN_ERROR", "i2", `{}`)},
		{run("RUN_STARTED", "i3", `{}`)},
	} {
		for j, e := range batch {
			e.Offset = made.Head + int64(j)
			made.Apply(&e)
			batch[j].Offset = 99 // to be ignored
		}
		made.Head += int64(len(batch))
		must(w.Append(w.ctx, tapedeck.Append{Session: "a", Events: batch}))(t)
		if d := cmp.Diff(made, must(w.Head(w.ctx, "a"))(t)); d != "" {
			t.Fatalf("after append %d: (-want +got)\n%s", i+1, d)
		}
	}
	if w.Reopen != nil {
		w.play(reopen())
		if d := cmp.Diff(made, must(w.Head(w.ctx, "a"))(t)); d != "" {
			t.Fatalf("after reopening: (-want +got)\n%s", d)
		}
	}
	if made.Title != "Two" || made.Status != tapedeck.StatusRunning || len(made.Runs) != 1 || made.Runs[0].Offset != 7 {
		t.Errorf("the fold itself is wrong: %+v", made)
	}
}
