package agui_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/decktest"
	"github.com/tapedeck/tapedeck/payload"
)

// scene is a run with everything that can be open, in several orders.
const scene = `RUN_STARTED {"threadId":"main","runId":"r"}
STATE_SNAPSHOT {"snapshot":{"n":1}}
STEP_STARTED {"stepName":"s"}
REASONING_START {"messageId":"rs"}
REASONING_MESSAGE_START {"messageId":"rm","role":"reasoning"}
REASONING_MESSAGE_CONTENT {"messageId":"rm","delta":"h"}
TOOL_CALL_START {"toolCallId":"first","toolCallName":"f","parentMessageId":"late"}
REASONING_MESSAGE_CONTENT {"messageId":"rm","delta":"m"}
REASONING_MESSAGE_END {"messageId":"rm"}
TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"Hel"}
TOOL_CALL_ARGS {"toolCallId":"first","delta":"{"}
TOOL_CALL_START {"toolCallId":"c","toolCallName":"g","parentMessageId":"m"}
TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"lo\n\u2028\"é"}
TOOL_CALL_ARGS {"toolCallId":"c","delta":"{\"a\":"}
TOOL_CALL_ARGS {"toolCallId":"first","delta":"}"}
TOOL_CALL_END {"toolCallId":"first"}
TOOL_CALL_ARGS {"toolCallId":"c","delta":"1}"}
TOOL_CALL_END {"toolCallId":"c"}
TEXT_MESSAGE_END {"messageId":"m"}
TOOL_CALL_START {"toolCallId":"c","toolCallName":"g","parentMessageId":"m"}
TOOL_CALL_ARGS {"toolCallId":"c","delta":" "}
TOOL_CALL_END {"toolCallId":"c"}
TOOL_CALL_RESULT {"messageId":"t2","toolCallId":"c","content":"two"}
STATE_SNAPSHOT {"snapshot":{"n":2}}
TOOL_CALL_START {"toolCallId":"alone","toolCallName":"h"}
TOOL_CALL_END {"toolCallId":"alone"}
TOOL_CALL_RESULT {"messageId":"t1","toolCallId":"first","content":"one"}
REASONING_END {"messageId":"rs"}
TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"m","delta":" again"}
ACTIVITY_SNAPSHOT {"messageId":"act","activityType":"X","content":{"k":[1]}}
TEXT_MESSAGE_END {"messageId":"m"}
STEP_FINISHED {"stepName":"s"}
TEXT_MESSAGE_START {"messageId":"late","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"late","delta":"Now"}
TEXT_MESSAGE_END {"messageId":"late"}
TEXT_MESSAGE_START {"messageId":"end","role":"assistant"}
TEXT_MESSAGE_CONTENT {"messageId":"end","delta":"Bye"}
TEXT_MESSAGE_END {"messageId":"end"}
RUN_FINISHED {"threadId":"main","runId":"r"}`

func sceneEvents() (list []tapedeck.Event) {
	words := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("u", payload.RoleUser, "go")})
	words.Invocation = "r"
	list = append(list, words)
	for line := range strings.Lines(scene) {
		typ, data, _ := strings.Cut(strings.TrimSpace(line), " ")
		list = append(list, tapedeck.Event{Type: typ, Invocation: "r", Data: json.RawMessage(data)})
	}
	return list
}

// A client that connects after any event of a run, with any part of the messages, and
// with both profiles, sees what a client sees that was there from the beginning.
func TestConnectAnywhere(t *testing.T) {
	events := sceneEvents()
	for _, version := range []string{`"protocolVersion":"1.0",`, ""} {
		var whole *frontend
		for at := 1; at <= len(events); at++ {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if _, err := w.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
					t.Fatal(err)
				}
				w.mustAppend(events[:at])
				r := w.open("/agui/steps/connect", `{`+version+`"threadId":"s","runId":"x","messages":[]}`)
				synctest.Wait()
				if at > 1 {
					w.mustAppend(events[at:])
					<-r.Done
				}
				f := &frontend{t: t}
				f.receive(r.events())
				if at == 1 { // no run is open yet
					return
				}
				if whole == nil {
					whole = f
					if len(f.messages) != 9 {
						t.Fatalf("the run has become\n%s", f)
					}
				}
				f.same(t, whole, fmt.Sprintf("connected before event %d", at))
				again := w.run("/agui/steps/connect", `{`+version+`"threadId":"s","runId":"x","messages":[]}`)
				f.receive(again.events())
				f.same(t, whole, fmt.Sprintf("connected before event %d and again", at))
				part := &frontend{t: t, messages: slices.Clone(whole.messages[:at%9])}
				part.receive(again.events())
				part.same(t, whole, "a client with a part")
			})
		}
	}
}

func (w *world) mustAppend(events []tapedeck.Event) {
	w.Helper()
	for _, e := range events {
		if _, err := w.Append(w.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{e}}); err != nil {
			w.Fatalf("%v: %s %s", err, e.Type, e.Data)
		}
	}
}

// A client that lives through the whole run gets the same as one that connects later.
func TestRunAndConnectAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lines := strings.Split(scene, "\n")
		task := strings.Join(lines[1:len(lines)-1], "\n")
		live := &frontend{t: t, messages: []map[string]any{{"id": "u", "role": "user", "content": task}}}
		live.receive(w.run("/agui/steps", input("s", "r", "u", task)).events())
		f := &frontend{t: t}
		f.receive(w.run("/agui/steps/connect", input("s", "x", "u", "")).events())
		delete(f.messages[0], "metadata") // the client that sent the message has no place of it
		f.same(t, live, "connected")
	})
}

// An agent that counts its messages and calls from one in each run uses their ids again. A
// page that lives through these runs, and sends all its messages with each, shows what a page
// shows that connects later; so does one that connects after any event of the last run.
func TestIDsOfRuns(t *testing.T) {
	var task []string
	for line := range strings.Lines(scene) {
		if !strings.HasPrefix(line, "RUN_") && !strings.HasPrefix(line, "ACTIVITY_") {
			task = append(task, strings.TrimSpace(line))
		}
	}
	for _, lines := range [][]string{
		task,
		{ // a call first, an answer with the id of its message, and a call without a message
			`TOOL_CALL_START {"toolCallId":"c","toolCallName":"f","parentMessageId":"m"}`, `TOOL_CALL_ARGS {"toolCallId":"c","delta":"{}"}`, `TOOL_CALL_END {"toolCallId":"c"}`,
			`TOOL_CALL_RESULT {"messageId":"m","toolCallId":"c","content":"one"}`,
			`TOOL_CALL_START {"toolCallId":"d","toolCallName":"f"}`, `TOOL_CALL_END {"toolCallId":"d"}`, `TOOL_CALL_RESULT {"messageId":"m","toolCallId":"d","content":"two"}`,
			`TEXT_MESSAGE_START {"messageId":"m"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"text"}`, `TEXT_MESSAGE_END {"messageId":"m"}`,
		},
		{ // reasoning in a span of the same id, and ids that look like those that the server makes
			`REASONING_START {"messageId":"r"}`, `REASONING_MESSAGE_START {"messageId":"r","role":"reasoning"}`, `REASONING_MESSAGE_CONTENT {"messageId":"r","delta":"hm"}`,
			`REASONING_MESSAGE_END {"messageId":"r"}`, `REASONING_END {"messageId":"r"}`,
			`TEXT_MESSAGE_START {"messageId":"r@10"}`, `TEXT_MESSAGE_END {"messageId":"r@10"}`, `TEXT_MESSAGE_START {"messageId":"r@11"}`, `TEXT_MESSAGE_END {"messageId":"r@11"}`,
			`TEXT_MESSAGE_START {"messageId":"m"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"text"}`, `TEXT_MESSAGE_END {"messageId":"m"}`,
			`TEXT_MESSAGE_START {"messageId":"m@33"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m@33","delta":"more"}`, `TEXT_MESSAGE_END {"messageId":"m@33"}`,
			`TEXT_MESSAGE_START {"messageId":"m@52"}`, `TEXT_MESSAGE_END {"messageId":"m@52"}`, `TEXT_MESSAGE_START {"messageId":"m@53"}`, `TEXT_MESSAGE_END {"messageId":"m@53"}`,
		},
		{ // the id of the user's message for everything that there is, also at once
			`TEXT_MESSAGE_START {"messageId":"uRUN"}`, `TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":"te"}`,
			`REASONING_MESSAGE_START {"messageId":"uRUN","role":"reasoning"}`, `REASONING_MESSAGE_CONTENT {"messageId":"uRUN","delta":"h"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":"x"}`, `ACTIVITY_SNAPSHOT {"messageId":"uRUN","activityType":"X","content":{"k":1}}`,
			`REASONING_MESSAGE_CONTENT {"messageId":"uRUN","delta":"m"}`, `TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":"t"}`, `TEXT_MESSAGE_END {"messageId":"uRUN"}`,
			`REASONING_MESSAGE_END {"messageId":"uRUN"}`, `TOOL_CALL_START {"toolCallId":"uRUN","toolCallName":"f","parentMessageId":"uRUN"}`, `TOOL_CALL_END {"toolCallId":"uRUN"}`,
			`TOOL_CALL_RESULT {"messageId":"uRUN","toolCallId":"uRUN","content":"one"}`, `ACTIVITY_DELTA {"messageId":"uRUN","activityType":"X","patch":[{"op":"replace","path":"/k","value":2}]}`,
		},
		{ // the agent speaks as the user, under the user's id and again
			`TEXT_MESSAGE_START {"messageId":"uRUN","role":"user"}`, `TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":"I"}`, `TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":" say"}`,
			`TEXT_MESSAGE_END {"messageId":"uRUN"}`, `TEXT_MESSAGE_START {"messageId":"uRUN"}`, `TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":"te"}`, `TEXT_MESSAGE_END {"messageId":"uRUN"}`,
			`TEXT_MESSAGE_START {"messageId":"uRUN","role":"user"}`, `TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":"again"}`, `TEXT_MESSAGE_END {"messageId":"uRUN"}`,
			`TEXT_MESSAGE_START {"messageId":"uRUN"}`, `TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":"xt"}`, `TEXT_MESSAGE_END {"messageId":"uRUN"}`,
		},
		{ // a call in a message with the id of the user's message; then a call with the id of a message
			`TOOL_CALL_START {"toolCallId":"c","toolCallName":"f","parentMessageId":"uRUN"}`, `TOOL_CALL_END {"toolCallId":"c"}`,
			`TEXT_MESSAGE_START {"messageId":"uRUN"}`, `TEXT_MESSAGE_CONTENT {"messageId":"uRUN","delta":"text"}`, `TEXT_MESSAGE_END {"messageId":"uRUN"}`,
			`REASONING_MESSAGE_START {"messageId":"m","role":"reasoning"}`, `REASONING_MESSAGE_CONTENT {"messageId":"m","delta":"hm"}`, `REASONING_MESSAGE_END {"messageId":"m"}`,
			`TOOL_CALL_START {"toolCallId":"m","toolCallName":"f"}`, `TOOL_CALL_END {"toolCallId":"m"}`, `TOOL_CALL_RESULT {"messageId":"m","toolCallId":"m","content":"two"}`,
		},
		{ // an activity with the id of a text, in all runs
			`TEXT_MESSAGE_START {"messageId":"m"}`, `ACTIVITY_SNAPSHOT {"messageId":"m","activityType":"X","content":{"k":1}}`, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"te"}`,
			`ACTIVITY_DELTA {"messageId":"m","activityType":"X","patch":[{"op":"replace","path":"/k","value":2}]}`, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"xt"}`, `TEXT_MESSAGE_END {"messageId":"m"}`,
		},
		{ // answers to calls that nobody has made, or that are made later
			`TEXT_MESSAGE_START {"messageId":"m"}`, `TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"te"}`, `TOOL_CALL_RESULT {"messageId":"a","toolCallId":"nobody","content":"one"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"xt"}`, `TOOL_CALL_RESULT {"messageId":"b","toolCallId":"late","content":"two"}`, `TEXT_MESSAGE_END {"messageId":"m"}`,
			`TEXT_MESSAGE_START {"messageId":"a"}`, `TEXT_MESSAGE_CONTENT {"messageId":"a","delta":"more"}`, `TEXT_MESSAGE_END {"messageId":"a"}`,
			`TOOL_CALL_START {"toolCallId":"late","toolCallName":"f","parentMessageId":"m"}`, `TOOL_CALL_END {"toolCallId":"late"}`, `TOOL_CALL_RESULT {"messageId":"b","toolCallId":"late","content":"three"}`,
		},
		{ // two answers to a call, while a text with the id of the answer is open
			`TOOL_CALL_START {"toolCallId":"c","toolCallName":"f"}`, `TOOL_CALL_END {"toolCallId":"c"}`, `TOOL_CALL_RESULT {"messageId":"a","toolCallId":"c","content":"one"}`,
			`TEXT_MESSAGE_START {"messageId":"a"}`, `TEXT_MESSAGE_CONTENT {"messageId":"a","delta":"te"}`, `TOOL_CALL_RESULT {"messageId":"b","toolCallId":"c","content":"two"}`,
			`TEXT_MESSAGE_CONTENT {"messageId":"a","delta":"xt"}`, `TEXT_MESSAGE_END {"messageId":"a"}`,
			`TEXT_MESSAGE_START {"messageId":"b"}`, `TEXT_MESSAGE_CONTENT {"messageId":"b","delta":"te"}`, `TOOL_CALL_START {"toolCallId":"c","toolCallName":"f"}`, `TEXT_MESSAGE_CONTENT {"messageId":"b","delta":"xt"}`, `TEXT_MESSAGE_END {"messageId":"b"}`,
			`TOOL_CALL_ARGS {"toolCallId":"c","delta":"{}"}`, `TOOL_CALL_END {"toolCallId":"c"}`, `TOOL_CALL_RESULT {"messageId":"b","toolCallId":"c","content":"three"}`,
		},
	} {
		texts := 3 * max(1, strings.Count(strings.Join(lines, ""), `"delta":"xt"`)) // a text that comes in two pieces is whole
		for at := range lines {
			if testing.Short() && at%5 != 2 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				page := &frontend{t: t}
				say := func(run string, lines []string) *reader {
					lines = strings.Split(strings.ReplaceAll(strings.Join(lines, "\n"), "RUN", run), "\n")
					page.messages = append(page.messages, map[string]any{"id": "u" + run, "role": "user", "content": strings.Join(lines, "\n")})
					return w.open("/agui/steps", inputOf("s", "r"+run, page.messages))
				}
				for _, run := range []string{"1", "2"} {
					r := say(run, lines)
					<-r.Done
					page.receive(r.events())
				}
				r := say("3", slices.Insert(slices.Clone(lines), at, "wait"))
				synctest.Wait()
				reloaded := w.open("/agui/steps/connect", input("s", "x", "u", ""))
				synctest.Wait()
				w.Proceed <- struct{}{}
				<-r.Done
				page.receive(r.events())
				late := &frontend{t: t}
				again := w.run("/agui/steps/connect", input("s", "x", "u", ""))
				late.receive(again.events())

				stayed := &frontend{t: t, messages: slices.Clone(page.messages)}
				stayed.receive(again.events())
				stayed.same(t, late, "the page that stays, connected again")
				<-reloaded.Done
				f := &frontend{t: t}
				f.receive(reloaded.events())
				f.same(t, late, fmt.Sprint("the page that is loaded before line ", at))
				for _, f := range []*frontend{page, late} {
					for _, m := range f.messages {
						if m["role"] == payload.RoleUser {
							delete(m, "metadata") // the client that sent the message has no place of it
						}
					}
				}
				page.same(t, late, "the page that stays")
				whole := 0
				ids := map[any]bool{}
				for _, m := range page.messages {
					if ids[m["id"]] {
						t.Errorf("two messages have the id %s:\n%s", m["id"], page)
					}
					ids[m["id"]] = true
					if s, _ := m["content"].(string); m["role"] == payload.RoleAssistant && (s == "Hello\n\u2028\"é again" || s == "text") {
						whole++
					}
				}
				if whole != texts {
					t.Errorf("%d of %d answers are whole:\n%s", whole, texts, page)
				}
			})
		}
	}
}

// A thread that is larger than the frames that clients accept is restored all the
// same, in frames that they accept.
func TestLargeThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		big := strings.Repeat("é\"\n", 1<<20) // 4 MiB
		var task strings.Builder
		for i := range 3 {
			text, _ := json.Marshal(fmt.Sprint(i, big))
			fmt.Fprintf(&task, "TEXT_MESSAGE_START {\"messageId\":\"m%d\"}\nTEXT_MESSAGE_CONTENT {\"messageId\":\"m%[1]d\",\"delta\":%[2]s}\nTEXT_MESSAGE_END {\"messageId\":\"m%[1]d\"}\n", i, text)
			fmt.Fprintf(&task, "TOOL_CALL_START {\"toolCallId\":\"c%d\",\"toolCallName\":\"f\",\"parentMessageId\":\"m%[1]d\"}\nTOOL_CALL_ARGS {\"toolCallId\":\"c%[1]d\",\"delta\":\"{}\"}\nTOOL_CALL_END {\"toolCallId\":\"c%[1]d\"}\nTOOL_CALL_RESULT {\"messageId\":\"t%[1]d\",\"toolCallId\":\"c%[1]d\",\"content\":\"ok\"}\n", i)
			fmt.Fprintf(&task, "REASONING_MESSAGE_START {\"messageId\":\"r%d\",\"role\":\"reasoning\"}\nREASONING_MESSAGE_CONTENT {\"messageId\":\"r%[1]d\",\"delta\":\"hm\"}\nREASONING_MESSAGE_END {\"messageId\":\"r%[1]d\"}\n", i)
		}
		events := []tapedeck.Event{{Type: tapedeck.RunStarted, Invocation: "r", Data: json.RawMessage(`{"threadId":"main","runId":"r"}`)}}
		for line := range strings.Lines(task.String()) {
			typ, data, _ := strings.Cut(strings.TrimSpace(line), " ")
			events = append(events, tapedeck.Event{Type: typ, Invocation: "r", Data: json.RawMessage(data)})
		}
		if _, err := w.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		w.mustAppend(events[:1])
		live := w.open("/agui/steps/connect", input("s", "x", "u", ""))
		synctest.Wait()
		w.mustAppend(events[1:])
		w.mustAppend([]tapedeck.Event{{Type: tapedeck.RunFinished, Invocation: "r"}})
		<-live.Done
		late := w.run("/agui/steps/connect", input("s", "x", "u", ""))
		for what, r := range map[string]*reader{"live": live, "late": late} {
			for _, frame := range r.Frames(t) {
				if len(frame.Data) > 10<<20 {
					t.Errorf("%s: a frame has %d bytes", what, len(frame.Data))
				}
			}
		}
		a, b := &frontend{t: t}, &frontend{t: t}
		a.receive(live.events())
		b.receive(late.events())
		if len(b.messages) != 9 || len(b.messages[6]["content"].(string)) < 4<<20 {
			t.Errorf("%d messages were restored", len(b.messages))
		}
		b.same(t, a, "the late client")
	})
}

// A run with a rewind before it: a client that has the reverted messages drops them.
func TestConnectAfterRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := &frontend{t: t, messages: []map[string]any{{"id": "u1"}}}
		f.receive(w.run("/agui/steps", input("s", "r1", "u1", decktest.Say("m1", "one"))).events())
		f.messages = append(f.messages, map[string]any{"id": "u2"})
		f.receive(w.run("/agui/steps", input("s", "r2", "u2", decktest.Say("m2", "two")+"\nSTATE_SNAPSHOT {\"snapshot\":1}")).events())
		if len(f.messages) != 4 || f.state == nil {
			t.Fatalf("the front end shows\n%s", f)
		}
		if _, err := w.Session("s").Rewind(t.Context(), api.Rewind{BeforeInvocation: "r2"}); err != nil {
			t.Fatal(err)
		}
		f.receive(w.run("/agui/steps/connect", input("s", "x", "u1", "")).events())
		if len(f.messages) != 2 || f.messages[1]["content"] != "one" || fmt.Sprint(f.state) != "map[]" {
			t.Errorf("after the rewind the front end shows\n%s", f)
		}
	})
}

// A thread with more messages than one question to the views returns is restored as
// a whole, and a client far behind adds only its new message.
func TestLongThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_050
		w := newWorld(t)
		if _, err := w.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		events := make([]tapedeck.Event, n)
		for i := range events {
			events[i] = payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(fmt.Sprint("m", i), payload.RoleUser, "x")})
		}
		if _, err := w.Append(t.Context(), tapedeck.Append{Session: "s", Events: events}); err != nil {
			t.Fatal(err)
		}
		f := &frontend{t: t}
		f.receive(w.run("/agui/steps/connect", input("s", "x", "u", "")).events())
		if len(f.messages) != n || f.messages[0]["id"] != "m0" || f.messages[n-1]["id"] != fmt.Sprint("m", n-1) {
			t.Fatalf("%d messages were restored", len(f.messages))
		}
		w.run("/agui/steps", `{"threadId":"s","runId":"r","messages":[{"id":"m3","role":"user","content":"x"},{"id":"new","role":"user","content":"hello"}]}`)
		f.receive(w.run("/agui/steps/connect", input("s", "x", "u", "")).events())
		if len(f.messages) != n+1 || f.messages[n]["id"] != "new" {
			t.Errorf("now there are %d messages", len(f.messages))
		}
	})
}

// Whole messages that another program adds during a run reach the clients of the run.
func TestMessagesDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.open("/agui/steps", input("s", "r", "u", "wait\n"+decktest.Say("end", "Bye")))
		synctest.Wait()
		for _, m := range []string{
			`{"id":"w1","role":"user","content":[{"type":"text","text":"and "},{"type":"text","text":"this"}],"mine":1}`,
			`{"id":"w2","role":"assistant","content":"Yes","toolCalls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"id":"w3","role":"tool","toolCallId":"k","content":"ok"}`,
			`{"id":"w4","role":"reasoning","content":"hm"}`,
			`{"id":"w5","role":"activity","activityType":"X","content":{"a":1}}`,
			`{"id":"w6","role":"system","content":"Be short.","name":"ops"}`,
			`{"id":"w7","role":"system","content":"the system text","metadata":{"tapedeck":{"prompt":"sha256:x"}}}`,
			`{"id":"u","role":"user","content":"changed"}`,
		} {
			w.mustAppend([]tapedeck.Event{{Type: tapedeck.MessageAdded, Invocation: "r", Data: json.RawMessage(`{"message":` + m + `}`)}})
		}
		w.Proceed <- struct{}{}
		<-r.Done
		f := &frontend{t: t, messages: []map[string]any{{"id": "u"}}}
		f.receive(r.events())
		var got []string
		for _, m := range f.messages {
			got = append(got, fmt.Sprint(m["id"], ":", m["role"], ":", m["content"]))
		}
		want := []string{"u:<nil>:<nil>", "w1:user:and this", "w2:assistant:Yes", "w3:tool:ok", "w4:reasoning:hm", "w5:activity:map[a:1]", "w6:system:Be short.", "end:assistant:Bye"}
		if !slices.Equal(got, want) {
			t.Errorf("the front end has\n%q\nwant\n%q", got, want)
		}
		late := &frontend{t: t}
		late.receive(w.run("/agui/steps/connect", input("s", "x", "u", "")).events())
		if len(late.messages) != len(want) {
			t.Errorf("the late client has\n%s", late)
		}
	})
}
