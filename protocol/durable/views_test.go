package durable_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/durable"
	"github.com/tapedeck/tapedeck/view"
)

// offsetAt is the offset before record n.
func offsetAt(n int) string { return fmt.Sprintf("%016d_%016d", n, 0) }

// merge puts the events of concurrent runs into one order, and keeps the order of each run.
func merge(t *rapid.T, runs [][]string) (out []string) {
	for len(runs) > 0 {
		i := rapid.IntRange(0, len(runs)-1).Draw(t, "next")
		out = append(out, runs[i][0])
		if runs[i] = runs[i][1:]; len(runs[i]) == 0 {
			runs = append(runs[:i], runs[i+1:]...)
		}
	}
	return out
}

// drawTurn returns the events of a run on a thread, with everything that may be in it in any
// order: parts of several messages and calls, state, and events that views do not show.
// idsOf is the part of its ids that is not random.
func drawTurn(t *rapid.T, turn int, idsOf string) []string {
	thread := rapid.SampledFrom([]string{"main", "side"}).Draw(t, "thread")
	inv := fmt.Sprint("inv_", turn)
	var out []string
	event := func(typ, data string) {
		out = append(out, fmt.Sprintf(`{"type":%q,"thread":%q,"invocation":%q,"data":%s}`, typ, thread, inv, data))
	}
	added := func() {
		event("message.added", fmt.Sprintf(`{"message":{"id":"u%d.%d",%s}}`, turn, len(out), rapid.SampledFrom([]string{
			`"role":"user","content":"hi"`, `"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","source":{"type":"url","value":"x"}}]`,
			`"role":"system","content":"p","metadata":{"tapedeck":{"prompt":"sha256:1"}}`, `"role":"assistant","content":"yes"`,
		}).Draw(t, "message")))
	}
	for range rapid.IntRange(0, 2).Draw(t, "before") {
		added()
	}
	event("RUN_STARTED", fmt.Sprintf(`{"threadId":%q,"runId":%q}`, thread, inv))
	open := map[string]bool{}
	id := func(kind string) string {
		return fmt.Sprintf("%s%s.%d", kind, idsOf, rapid.IntRange(0, 1).Draw(t, "id"))
	}
	steps := map[string]func(){
		"text": func() {
			m := id("m")
			if !open[m] {
				open[m] = true
				event("TEXT_MESSAGE_START", fmt.Sprintf(`{"messageId":%q,"role":"assistant"}`, m))
			}
			delta, _ := json.Marshal(rapid.StringN(1, 4, -1).Draw(t, "delta"))
			event("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`{"messageId":%q,"delta":%s}`, m, delta))
		},
		"text end": func() {
			if m := id("m"); open[m] {
				delete(open, m)
				event("TEXT_MESSAGE_END", fmt.Sprintf(`{"messageId":%q}`, m))
			}
		},
		"call": func() {
			c := id("c")
			if !open[c] {
				open[c] = true
				event("TOOL_CALL_START", fmt.Sprintf(`{"toolCallId":%q,"toolCallName":"Read"}`, c))
			}
			event("TOOL_CALL_ARGS", fmt.Sprintf(`{"toolCallId":%q,"delta":"1"}`, c))
		},
		"call end": func() {
			if c := id("c"); open[c] {
				delete(open, c)
				event("TOOL_CALL_END", fmt.Sprintf(`{"toolCallId":%q}`, c))
				event("TOOL_CALL_RESULT", fmt.Sprintf(`{"toolCallId":%q,"messageId":%q,"content":"ok"}`, c, id("m")))
			}
		},
		"snapshot": func() { event("STATE_SNAPSHOT", fmt.Sprintf(`{"snapshot":{"n":%d}}`, len(out))) },
		"delta": func() {
			event("STATE_DELTA", fmt.Sprintf(`{"delta":[{"op":"add","path":"/%d","value":1}]}`, len(out)%5))
		},
		"misfit": func() { event("STATE_DELTA", `{"delta":[{"op":"remove","path":"/none"}]}`) },
		"messages": func() {
			event("MESSAGES_SNAPSHOT", `{"messages":[{"id":"a","role":"user","content":"1"},{"id":"b","role":"user","content":"2"},{"id":"c"}]}`)
		},
		"unknown": func() { event("x.y", `{"type":"z"}`) },
		"added":   added,
	}
	names := []string{"text", "text", "text end", "call", "call end", "snapshot", "delta", "delta", "misfit", "messages", "unknown", "added"}
	for range rapid.IntRange(0, 20).Draw(t, "steps") {
		steps[rapid.SampledFrom(names).Draw(t, "step")]()
	}
	event("RUN_FINISHED", fmt.Sprintf(`{"threadId":%q,"runId":%q}`, thread, inv))
	return out
}

// TestViewsDoNotDependOnWhereReadingBegins reads each view as one page, in small pages, and
// from every offset, with a new handler and with one that has kept folds, and expects the
// same messages at the same offsets.
func TestViewsDoNotDependOnWhereReadingBegins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := options(newMemory())
		handler := durable.New(o)
		do(t, handler, "PUT", "sessions/s", "")
		var turns [][]string
		again := rapid.Bool().Draw(t, "the turns use the same ids, one after the other")
		for turn := range rapid.IntRange(1, 3).Draw(t, "turns") {
			if again {
				turns = append(turns, drawTurn(t, turn, ""))
			} else {
				turns = append(turns, drawTurn(t, turn, fmt.Sprint(turn)))
			}
		}
		events := slices.Concat(turns...)
		if !again {
			events = merge(t, turns)
		}
		do(t, handler, "POST", "sessions/s", "["+strings.Join(events, ",")+"]", asJSON...)
		records := 1 + len(events)
		for _, view := range []string{"agui", "messages", "state"} {
			path := "sessions/s/views/" + view
			var whole []json.RawMessage
			decode(t, do(t, durable.New(o), "GET", path, ""), &whole)
			at := map[string]int{offsetAt(0): 0} // by offset: the number of messages before it
			var small []json.RawMessage
			for offset, done := "-1", false; !done; {
				resp := do(t, handler, "GET", path+"?limit=1&offset="+offset, "")
				offset, done = resp.Header.Get("Stream-Next-Offset"), resp.Header.Get("Stream-Up-To-Date") != ""
				decode(t, resp, &small)
				at[offset] = len(small)
			}
			if diff := cmp.Diff(text(whole), text(small)); diff != "" {
				t.Fatalf("%s in small pages (-whole +small):\n%s", view, diff)
			}
			for n := range records + 1 {
				before, ok := at[offsetAt(n)]
				if !ok {
					continue // events without a message: the next offset is after them
				}
				for name, handler := range map[string]http.Handler{"new": durable.New(o), "old": handler} {
					var rest []json.RawMessage
					decode(t, do(t, handler, "GET", path+"?offset="+offsetAt(n), ""), &rest)
					if diff := cmp.Diff(text(whole[before:]), text(rest)); diff != "" {
						t.Fatalf("%s from %d, by the %s handler (-expected +got):\n%s", view, n, name, diff)
					}
				}
			}
		}
	})
}

func text(messages []json.RawMessage) []string {
	out := []string{}
	for _, m := range messages {
		out = append(out, string(m))
	}
	return out
}

// decode appends the messages of a page to out.
func decode(t rapid.TB, resp *http.Response, out *[]json.RawMessage) {
	t.Helper()
	var page []json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	*out = append(*out, page...)
}

// TestInitialState patches the initial state of a session, which every thread begins with,
// whether or not the reader has seen the beginning.
func TestInitialState(t *testing.T) {
	store := newMemory()
	o := options(store)
	_, err := store.Create(t.Context(), tapedeck.Spec{ID: "s", Events: []tapedeck.Event{
		{Type: tapedeck.SessionCreated, Data: []byte(`{"state":{"a":1}}`)},
		{Type: "x"},
		{Type: tapedeck.StateDelta, Thread: "side", Data: []byte(`{"delta":[{"op":"add","path":"/b","value":2}]}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int{0, 1, 2} {
		got := textOf(t, must(t, 200, durable.New(o), "GET", "sessions/s/views/state?offset="+offsetAt(from), ""))
		if !strings.Contains(got, `"value":{"thread":"side","state":{"a":1,"b":2}}`) {
			t.Errorf("from %d: got %s", from, got)
		}
	}
}

// TestMessageBegunBeforeThePage reads the end of a long message alone.
func TestMessageBegunBeforeThePage(t *testing.T) {
	handler := newHandler(nil)
	must(t, 201, handler, "PUT", "sessions/s", "")
	const deltas = 2500 // more than one page of the look-back
	events := []string{`{"type":"TEXT_MESSAGE_START","data":{"messageId":"m"}}`}
	for range deltas {
		events = append(events, `{"type":"TEXT_MESSAGE_CONTENT","data":{"messageId":"m","delta":"x"}}`)
	}
	events = append(events, `{"type":"TEXT_MESSAGE_END","data":{"messageId":"m"}}`, `{"type":"TEXT_MESSAGE_END","data":{"messageId":"never begun"}}`)
	must(t, 204, handler, "POST", "sessions/s", "["+strings.Join(events, ",")+"]", asJSON...)
	got := textOf(t, must(t, 200, handler, "GET", "sessions/s/views/messages?offset="+offsetAt(deltas+1), ""))
	var messages []struct {
		Key   string
		Value struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(got), &messages); err != nil {
		t.Fatal(err)
	}
	if len(messages) != 1 || messages[0].Value.Role != "assistant" || len(messages[0].Value.Content) != deltas {
		t.Errorf("got %d messages: %.200s", len(messages), got)
	}
}

// TestMessageOpenedAgain reads a message that its run ends and opens again, from every
// offset: the change at its second end has the whole text.
func TestMessageOpenedAgain(t *testing.T) {
	handler := newHandler(nil)
	must(t, 201, handler, "PUT", "sessions/s", "")
	events := []string{`{"type":"RUN_STARTED","invocation":"r","data":{"runId":"r"}}`}
	for _, part := range []string{"one ", "two"} {
		for _, e := range []string{`START","data":{"messageId":"m"`, `CONTENT","data":{"messageId":"m","delta":"` + part + `"`, `END","data":{"messageId":"m"`} {
			events = append(events, `{"invocation":"r","type":"TEXT_MESSAGE_`+e+`}}`)
		}
	}
	must(t, 204, handler, "POST", "sessions/s", "["+strings.Join(events, ",")+"]", asJSON...)
	for from := range 8 {
		got := textOf(t, must(t, 200, handler, "GET", "sessions/s/views/messages?offset="+offsetAt(from), ""))
		if first := strings.Contains(got, `"content":"one "},"headers":{"operation":"insert"`); first != (from <= 4) {
			t.Errorf("from %d the first change: %v, %s", from, first, got)
		}
		if !strings.Contains(got, `"content":"one two"},"headers":{"operation":"update"`) {
			t.Errorf("from %d: %s", from, got)
		}
	}
}

// TestSparseFilter finds the one event of many that passes a filter, without an answer for
// every page in between.
func TestSparseFilter(t *testing.T) {
	handler := newHandler(func(o *durable.Options) { o.PageBytes = 1000 })
	must(t, 201, handler, "PUT", "sessions/s", "")
	const n = 300
	events := strings.Repeat(`{"type":"x.noise","data":{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaa"}},`, n)
	must(t, 204, handler, "POST", "sessions/s", "["+events+`{"type":"x.signal"}]`, asJSON...)
	answers := 0
	for offset, found := "-1", false; !found; answers++ {
		resp := must(t, 200, handler, "GET", "sessions/s?type=x.signal&offset="+offset, "")
		offset, found = resp.Header.Get("Stream-Next-Offset"), strings.Contains(textOf(t, resp), "x.signal")
		if !found && resp.Header.Get("Stream-Up-To-Date") != "" {
			t.Fatal("it was not found")
		}
	}
	if answers < 2 || answers > 10 {
		t.Errorf("it took %d answers", answers)
	}
}

// An agent uses its ids again in each run, and people those of the agent. Every reader of
// the view messages gets the same ids, also if its first event is far after the first use.
func TestIDsUsedAgain(t *testing.T) {
	t.Run("soon", func(t *testing.T) { usedAgain(t, 0) })
	t.Run("after more messages than the view has in memory", func(t *testing.T) { usedAgain(t, 2*view.Window) })
}

func usedAgain(t *testing.T, between int) {
	o := options(newMemory())
	handler := durable.New(o)
	must(t, 201, handler, "PUT", "sessions/s", "")
	head := 1
	appendAll := func(events ...tapedeck.Event) {
		done, err := o.Store.Append(t.Context(), tapedeck.Append{Session: "s", Events: events})
		if err != nil {
			t.Fatal(err)
		}
		head = int(done.Next)
	}
	for i := range 3 {
		appendAll(turnOf(i, 0, "")...)
		appendAll(tapedeck.Event{Type: tapedeck.MessageAdded, Data: []byte(fmt.Sprintf(`{"message":{"id":"m0","role":"user","content":"and %d?"}}`, i))})
		for k := range between {
			appendAll(tapedeck.Event{Type: tapedeck.MessageAdded, Data: []byte(fmt.Sprintf(`{"message":{"id":"x%d.%d","role":"user","content":"and"}}`, i, k))})
		}
		appendAll(slices.Repeat([]tapedeck.Event{{Type: "x.noise"}}, 3000)...)
	}
	var whole []json.RawMessage
	decode(t, do(t, handler, "GET", "sessions/s/views/messages", ""), &whole)
	keys := map[string]int{}
	for _, raw := range whole {
		var c struct{ Type, Key string }
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		keys[c.Type+"/"+c.Key]++
	}
	if n := keys["message/m0@12"]; between == 0 && (len(keys) != 13 || n != 3) { // what people say under an id replaces what they said
		t.Errorf("the entities are %v", keys)
	}
	for from := 0; from <= head; from += 97 {
		var rest []json.RawMessage
		decode(t, do(t, durable.New(o), "GET", "sessions/s/views/messages?offset="+offsetAt(from), ""), &rest)
		if diff := cmp.Diff(text(whole[len(whole)-len(rest):]), text(rest)); diff != "" {
			t.Fatalf("from %d (-whole +got):\n%s", from, diff)
		}
	}
}
