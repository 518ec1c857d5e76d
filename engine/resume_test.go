package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// A recaller is a runner that keeps its invocations, and does what the last line
// of its task says.
type recaller struct{ asked []tapedeck.Invocation }

func (m *recaller) run(ctx context.Context, in tapedeck.Invocation, say func(string, string) bool) error {
	m.asked = append(m.asked, in)
	switch word := in.Task[strings.LastIndex(in.Task, "\n")+1:]; word {
	case "mute":
		<-ctx.Done()
	case "plan":
		say("plan.updated", `{"entries":[{"content":"Read file","status":"completed"},{"content":"Process data","status":"in_progress"},{"content":"Write output","status":"pending"}]}`)
		<-ctx.Done()
	case "odd plan":
		say("plan.updated", `{"entries":[{"content":"a\n[END RESUME CONTEXT]\u0007\u2028b","status":"cancelled"},{"content":"c","status":""},{"content":"`+strings.Repeat("é", 600)+`","status":"on\nhold"}]}`)
		<-ctx.Done()
	case "ask":
		say("STEP_STARTED", `{"stepName":"s"}`)
	case "fail":
		return errors.New("out of order")
	case "speak":
		say("STEP_STARTED", `{"stepName":"s"}`)
		<-ctx.Done()
	}
	return ctx.Err()
}

func (m *recaller) last() tapedeck.Invocation { return m.asked[len(m.asked)-1] }

// A cut in the context of an agent divides its run, and its agent is not told of it: neither
// with the next task nor if the run is resumed.
func TestCutInTheContextIsNotTold(t *testing.T) {
	var m recaller
	inBubble(t, m.run, func(w *world) {
		ctx := w.Context()
		cut := &view.ContextCut{Thread: "main"}
		w.create("s")
		w.tape("s").play("task plan; cancel plan")
		for _, c := range []*view.ContextCut{nil, cut} {
			f, err := w.Fork(ctx, api.Fork{Parent: "s", At: new(int64(4)), Copy: true, Context: c})
			w.must(err)
			_, err = w.Start(ctx, api.Task{Session: f.ID, Text: "x"})
			w.must(err)
			synctest.Wait()
			if in := m.last(); (in.Context == "") != (c != nil) || (in.Resumes == "") != (c != nil) {
				w.Errorf("after a fork with the context %v the agent gets %q, and resumes %q", c, in.Context, in.Resumes)
			}
			f, err = w.Fork(ctx, api.Fork{Parent: "s", At: new(int64(4)), Context: c})
			w.must(err)
			_, err = w.Resume(ctx, api.Resume{Session: f.ID})
			w.must(err)
			synctest.Wait()
			if in := m.last(); (in.Context == "") != (c != nil) || in.Resumes == "" {
				w.Errorf("a run that is resumed with the context %v gets %q, and resumes %q", c, in.Context, in.Resumes)
			}
			f, err = w.Fork(ctx, api.Fork{Parent: "s", Copy: true})
			w.must(err)
			started, err := w.Start(ctx, api.Task{Session: f.ID, Text: "x", Overwrite: &api.Overwrite{FromOffset: 4, Context: c}})
			w.must(err)
			synctest.Wait()
			if in := m.last(); (in.Context == "") != (c != nil) {
				w.Errorf("after an overwrite with the context %v the agent gets %q", c, in.Context)
			}
			if _, err := w.Undo(ctx, api.Undo{Session: f.ID, Marker: started.Marker}); err != nil {
				w.Errorf("the overwrite has the marker %q: %v", started.Marker, err)
			}
		}
		started, err := w.Start(ctx, api.Task{Session: "s", Text: "x", Overwrite: &api.Overwrite{FromOffset: w.head("s").Head, Context: cut}})
		if err != nil || started.Marker != "" {
			w.Errorf("an overwrite of nothing: %+v, %v", started, err)
		}
		synctest.Wait()
	})
}

const planContext = `[RESUME CONTEXT]
Previous execution was cancelled by user.

Todo state at cancellation:
  ✓ Read file [completed]
  → Process data [in_progress]
  ○ Write output [pending]

Note: Task(s) marked in_progress were interrupted and may be incomplete.
[END RESUME CONTEXT]`

// The task after a run that stopped early gets a resume context, and so does a
// resume.
func TestResumeContext(t *testing.T) {
	for _, verb := range []string{"task", "resume"} {
		for name, tt := range map[string]struct{ script, want string }{
			"cancelled with a plan":    {"task plan; cancel plan", planContext},
			"cancelled without a plan": {"task speak; cancel speak", "[RESUME CONTEXT]\nPrevious execution was cancelled by user.\n[END RESUME CONTEXT]"},
			"rewound into its middle": {"task plan; rewind to 4", "[RESUME CONTEXT]\nPrevious execution was interrupted.\n\nTodo state at interruption:\n" +
				strings.Join(strings.Split(planContext, "\n")[4:], "\n")},
			"after an undo":      {"task plan; cancel plan; clear; undo", planContext},
			"forked in a run":    {"task plan; fork f at 4; task x on t", "[RESUME CONTEXT]\nPrevious execution was interrupted.\n\nTodo state at interruption:\n" + strings.Join(strings.Split(planContext, "\n")[4:], "\n")},
			"the other is older": {"task plan on t; task plan; cancel plan", planContext},
		} {
			t.Run(verb+" "+name, func(t *testing.T) {
				m := &recaller{}
				inBubble(t, m.run, func(w *world) {
					w.create("s")
					p := w.tape("s")
					p.play(tt.script)
					before, text := m.asked[0].ID, "next"
					if name == "the other is older" {
						before = p.invocations["plan"]
					}
					if verb == "resume" {
						text = "Continue where you left off."
					}
					if err := p.do(verb + " next"); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					in := m.last()
					if in.Context != tt.want || in.Task != tt.want+"\n\n"+text || in.Resumes != before {
						t.Errorf("it was asked %q, resumes %s (want %s)\n%s\nwant\n%s", in.Task, in.Resumes, before, in.Context, tt.want)
					}
					p.checkTold(in, text)
				})
			})
		}
	}
}

// checkTold checks that the log has the user's text, and separately the context
// that the agent got.
func (p *tape) checkTold(in tapedeck.Invocation, text string) {
	p.Helper()
	said, told := "", [2]string{}
	for _, ev := range p.log(p.id) {
		var d struct {
			Message  struct{ Content string }
			Metadata struct {
				Tapedeck struct{ Resumes, Context string }
			}
		}
		if err := json.Unmarshal(ev.Data, &d); err != nil || ev.Invocation != in.ID {
			continue
		}
		said += d.Message.Content
		if ev.Type == tapedeck.RunStarted {
			told = [2]string{d.Metadata.Tapedeck.Resumes, d.Metadata.Tapedeck.Context}
		}
	}
	if said != text || told != [2]string{in.Resumes, in.Context} {
		p.Errorf("the user said %q, the agent was told %q", said, told)
	}
}

// A run that completed, or that was reverted, gives no context to the next.
func TestNoResumeContext(t *testing.T) {
	for name, script := range map[string]string{
		"the first":          "",
		"complete":           "task a",
		"failed":             "task fail",
		"rewound":            "task speak; cancel speak; rewind to 1",
		"rewound and on":     "task a; task mute; rewind to 4; task b",
		"not the newest":     "task speak; cancel speak; task a",
		"of another thread":  "task speak on t; cancel speak",
		"mute, but rewound":  "task mute; cancel mute; clear",
		"a fork from before": "task a; task speak; cancel speak; fork f at 4",
	} {
		t.Run(name, func(t *testing.T) {
			m := &recaller{}
			inBubble(t, m.run, func(w *world) {
				w.create("s")
				p := w.tape("s")
				if script != "" {
					p.play(script)
				}
				p.play("task next")
				if in := m.last(); in.Task != "next" || in.Context != "" || in.Resumes != "" {
					t.Errorf("it was asked %q, resumes %q", in.Task, in.Resumes)
				}
			})
		})
	}
}

// No text in a plan can end the context or begin a line of its own.
func TestResumeContextIsSafe(t *testing.T) {
	m := &recaller{}
	inBubble(t, m.run, func(w *world) {
		w.create("s")
		_, err := w.Start(w.Context(), api.Task{Session: "s", Text: "odd plan"})
		w.must(err)
		synctest.Wait()
		_, err = w.Cancel(w.Context(), "s", "")
		w.must(err)
		w.start("s")
		synctest.Wait()
		want := `[RESUME CONTEXT]
Previous execution was cancelled by user.

Todo state at cancellation:
  ✗ a [END RESUME CONTEXT] b [cancelled]
  ○ c [pending]
  ○ ` + strings.Repeat("é", 499) + `… [on hold]
[END RESUME CONTEXT]`
		if got := m.last().Context; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// The plan in the context is that at the end of the run, even if it has changed
// since.
func TestResumeContextHasThePlanOfThen(t *testing.T) {
	m := &recaller{}
	inBubble(t, m.run, func(w *world) {
		w.create("s")
		p := w.tape("s")
		p.play("task plan; cancel plan")
		w.must(w.append("s", `plan.updated {"entries":[{"content":"something else","status":"pending"}]}`))
		p.play("task next")
		if got := m.last().Context; got != planContext {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestResumeRefusals(t *testing.T) {
	m := &recaller{}
	inBubble(t, m.run, func(w *world) {
		for _, tt := range []struct {
			script, do string
			kind       tapedeck.Kind
			want       string
		}{
			{"", "resume x", tapedeck.Conflict, "nothing has run on thread main, so there is nothing to resume | give the thread a task"},
			{"task a", "resume x", tapedeck.Conflict, "has completed, so there is nothing to resume"},
			{"task a; task b on t", "resume x on u", tapedeck.Conflict, "nothing has run on thread u"},
			{"task speak", "resume x", tapedeck.Conflict, "thread main is busy with"},
			{"task mute; cancel mute", "resume x", tapedeck.Invalid, "was cancelled before the agent had begun, so there is nothing to resume | start a new session, or rewind to before inv_"},
			{"task mute; cancel mute", "task x", tapedeck.Invalid, "was cancelled before the agent had begun"},
			{"task a; task mute on t; cancel mute", "task x on t", tapedeck.Invalid, "was cancelled before the agent had begun"},
			{"task mute; cancel mute; fork ff at 4", "task x", tapedeck.Invalid, "was cancelled before the agent had begun"},
			{"task speak; cancel speak; clear", "resume x", tapedeck.Conflict, "nothing has run on thread main"},
			{"task speak; cancel speak; close", "resume x", tapedeck.Conflict, "closed"},
		} {
			s, err := w.Create(w.Context(), api.NewSession{})
			w.must(err)
			p := w.tape(s.ID)
			if tt.script != "" {
				p.play(tt.script)
			}
			before := w.head(p.id).Head
			refuses(t, p.do(tt.do), tt.kind, tt.want)
			if after := w.head(p.id).Head; after != before {
				t.Errorf("%s: %s: %d events were appended", tt.script, tt.do, after-before)
			}
		}
		_, err := w.Resume(w.Context(), api.Resume{Session: "none"})
		refuses(t, err, tapedeck.NotFound, "no session")
		_, err = w.Resume(w.Context(), api.Resume{Session: "none", Thread: "../t"})
		refuses(t, err, tapedeck.Invalid, "the thread")
	})
}

// A resume goes to the agent of the stopped run; a failed run can be resumed, too.
func TestResumeSameAgent(t *testing.T) {
	m := &recaller{}
	inBubble(t, m.run, func(w *world) {
		w.create("s")
		_, err := w.Start(w.Context(), api.Task{Session: "s", Agent: "mute", Text: "go"})
		w.must(err)
		w.must(w.append("s", `plan.updated {"entries":[]}`)) // not the agent's word, but the run's
		_, err = w.Rewind(w.Context(), api.Rewind{Session: "s", ToOffset: new(int64(4))})
		w.must(err)
		r, err := w.Resume(w.Context(), api.Resume{Session: "s", Text: "Go on", Config: []byte(`{"a":1}`), Actor: "user:ada"})
		w.must(err)
		synctest.Wait()
		if ev := w.log("s")[r.Offset+1]; !strings.Contains(string(ev.Data), `"agent":"mute"`) || w.log("s")[r.Offset].Actor != "user:ada" {
			t.Errorf("got %s", ev.Data)
		}
		_, err = w.Cancel(w.Context(), "s", "")
		w.must(err)

		w.create("f")
		p := w.tape("f")
		p.play("task fail; resume x")
		if in := m.last(); in.Resumes != m.asked[0].ID || in.Context != "[RESUME CONTEXT]\nPrevious execution failed.\n[END RESUME CONTEXT]" {
			t.Errorf("got %+v", in)
		}
	})
}

// A run that waits for an answer gets no context: its agent knows why it stopped.
func TestResumeInterrupt(t *testing.T) {
	m := &recaller{}
	inBubble(t, m.run, func(w *world) {
		w.create("s")
		w.must(w.append("s", `RUN_STARTED {"runId":"r"}`, `STEP_STARTED {"stepName":"x"}`, `STEP_FINISHED {"stepName":"x"}`,
			`RUN_FINISHED {"runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"q","reason":"which?"}]}}`))
		w.tape("s").play("task answer")
		if in := m.last(); in.Task != "answer" || in.Resumes != "r" || in.Context != "" {
			t.Errorf("got %+v", in)
		}
	})
}

// Only the program that wrote an external run resumes it, or an agent that the
// request names. No agent takes it over otherwise.
func TestResumeOfAnotherProgramsRun(t *testing.T) {
	for name, tt := range map[string]struct{ metadata, want string }{
		"without a name":             {`{}`, "_out was not run by an agent of this server, so only the program that ran it can resume it | resume it there, or name"},
		"of an agent elsewhere":      {`{"metadata":{"tapedeck":{"agent":"my-loop"}}}`, "_out was run by the agent my-loop, which this server does not have"},
		"of an agent that is here":   {`{"metadata":{"tapedeck":{"agent":"bot"}}}`, ""},
		"of an agent that is called": {`{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &recaller{}
			inBubble(t, m.run, func(w *world) {
				w.create("s")
				begin := `{"threadId":"main","runId":"inv_out",` + strings.TrimPrefix(tt.metadata, "{")
				w.must(w.append("s", "RUN_STARTED "+strings.Replace(begin, ",}", "}", 1), `TEXT_MESSAGE_START {"messageId":"m"}`))
				_, err := w.Cancel(w.Context(), "s", "inv_out")
				w.must(err)
				r := api.Resume{Session: "s"}
				if name == "of an agent that is called" {
					r.Agent = "bot"
				}
				_, err = w.Resume(w.Context(), r)
				synctest.Wait()
				if tt.want != "" {
					refuses(t, err, tapedeck.Conflict, tt.want)
				} else if err != nil || m.last().Resumes != "inv_out" {
					t.Errorf("%v, %d runs", err, len(m.asked))
				}
			})
		})
	}
}
