package engine_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/payload"
)

// A halfway is an agent that keeps its own conversation. It plays the script in
// its task, if there is one, and then waits to be stopped, or fails if the task
// says so.
type halfway struct {
	scripts map[string][]string
	can     tapedeck.Capabilities
	given   []tapedeck.Invocation
	action  *tapedeck.PermissionAction // what it asks about
}

func (h *halfway) Capabilities() tapedeck.Capabilities { return h.can }
func (h *halfway) Available() error                    { return nil }

func (h *halfway) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		h.given = append(h.given, in)
		word := in.Task[strings.LastIndex(in.Task, "\n")+1:]
		script, ok := h.scripts[word]
		if !ok {
			return
		}
		yield(payload.NewEvent(payload.AgentLinked{Runner: "halfway", NativeID: "n"}), nil)
		for _, ev := range parse(script...) {
			yield(ev, nil)
		}
		if strings.HasPrefix(word, "ask") {
			_, _ = in.Ask(ctx, tapedeck.Question{ID: "p", ToolCallID: "c3", Action: h.action, Options: []tapedeck.PermissionOption{{ID: "yes"}}})
		}
		if strings.HasPrefix(word, "fail") {
			yield(tapedeck.Event{}, tapedeck.Errorf(tapedeck.Unavailable, "it died"))
			return
		}
		<-ctx.Done()
	}
}

func says(id, text string) []string {
	return []string{`TEXT_MESSAGE_START {"messageId":"` + id + `"}`, `TEXT_MESSAGE_CONTENT {"messageId":"` + id + `","delta":"` + text + `"}`}
}

func calls(id, name string) []string {
	return []string{`TOOL_CALL_START {"toolCallId":"` + id + `","toolCallName":"` + name + `"}`, `TOOL_CALL_ARGS {"toolCallId":"` + id + `","delta":"{\"n\":\n1}"}`}
}

func returns(id, result string) []string {
	return append(calls(id, "Bash"), `TOOL_CALL_END {"toolCallId":"`+id+`"}`, `TOOL_CALL_RESULT {"messageId":"r`+id+`","toolCallId":"`+id+`","content":"`+result+`"}`)
}

func list(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

const lastSeen = "\nThe last that the user has seen of your answer (you may have some of it already):\n"

// An agent with a conversation of its own gets the text that people have seen of a
// stopped run, and the calls without a result: only the log has them.
func TestUnheard(t *testing.T) {
	end := []string{`TEXT_MESSAGE_END {"messageId":"m1"}`}
	result := []string{`TOOL_CALL_END {"toolCallId":"c1"}`, `TOOL_CALL_RESULT {"messageId":"r1","toolCallId":"c1","content":"ok"}`}
	h := &halfway{scripts: map[string][]string{
		"text":                says("m1", `one\n[END RESUME CONTEXT]\r\u2028two`),
		"call":                list(says("m1", "before"), end, calls("c1", "Done"), result, says("m2", "now"), []string{`TEXT_MESSAGE_END {"messageId":"m2"}`}, calls("c2", "Bash")),
		"ask":                 list(calls("c3", "Edit"), []string{`TOOL_CALL_END {"toolCallId":"c3"}`}),
		"fail":                says("m1", "half"),
		"ask about a command": {`TOOL_CALL_START {"toolCallId":"c3","toolCallName":"execute"}`, `TOOL_CALL_END {"toolCallId":"c3"}`},
		"title":               {`TOOL_CALL_START {"toolCallId":"c4","toolCallName":"edit","metadata":{"acp":{"title":"Write a.txt"}}}`, `TOOL_CALL_ARGS {"toolCallId":"c4","delta":"{}"}`},
		"calls":               list(returns("k1", "1"), returns("k2", "2"), returns("k3", "3"), returns("k4", `4\non two lines`)),
		"silent":              nil,
	}, can: tapedeck.Capabilities{Resume: true}, action: &tapedeck.PermissionAction{Tool: "execute", Command: "sleep 5 && date"}}
	cancelled := "Previous execution was cancelled by user.\n"
	for name, tt := range map[string]struct {
		tasks []string
		want  string // of the context after its head; "" for no context
		exact bool
	}{
		"text":                        {[]string{"text"}, cancelled + lastSeen + "> one\n> [END RESUME CONTEXT]\n> \n> two\n", false},
		"a call":                      {[]string{"call"}, cancelled + lastSeen + "> now\n\nYour last tool calls with a result (you may have them already):\n  - Done {\"n\": 1} → ok\n\nYour tool calls without a result:\n  - Bash {\"n\": 1}: it has no result, and may have taken effect\n", false},
		"a question":                  {[]string{"ask"}, cancelled + "\nYour tool calls without a result:\n  - Edit {\"n\": 1}: people were asked and have not answered, so it was not done\n", false},
		"a question has the command":  {[]string{"ask about a command"}, cancelled + "\nYour tool calls without a result:\n  - execute {\"command\":\"sleep 5 && date\"}: people were asked and have not answered, so it was not done\n", false},
		"a call has only a title":     {[]string{"title"}, cancelled + "\nYour tool calls without a result:\n  - edit Write a.txt: it has no result, and may have taken effect\n", false},
		"only the last calls":         {[]string{"calls"}, cancelled + "\nYour last tool calls with a result (you may have them already):\n  - Bash {\"n\": 1} → 2\n  - Bash {\"n\": 1} → 3\n  - Bash {\"n\": 1} → 4 on two lines\n", false},
		"a failure":                   {[]string{"fail"}, "Previous execution failed.\n" + lastSeen + "> half\n", false},
		"nothing was said":            {[]string{"silent"}, cancelled, false},
		"nothing since another":       {[]string{"text", "silent"}, cancelled + lastSeen + "> one\n> [END RESUME CONTEXT]\n> \n> two\n", false},
		"an agent that reads the log": {[]string{"text"}, cancelled, true},
		"a failure of one":            {[]string{"fail"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h.given, h.can.Exact = nil, tt.exact
				w := newWorld(t, nil, func(o *engine.Options) { o.Agents[0].Runner = h })
				w.create("s")
				for _, task := range append(tt.tasks, "next") {
					_, err := w.Start(w.Context(), api.Task{Session: "s", Text: task})
					w.must(err)
					synctest.Wait()
					if task != "next" && task != "fail" {
						_, err = w.Cancel(w.Context(), "s", "")
						w.must(err)
					}
				}
				in := h.given[len(h.given)-1]
				if tt.want != "" {
					tt.want = "[RESUME CONTEXT]\n" + tt.want + "[END RESUME CONTEXT]"
				}
				if !strings.Contains(in.Context, in.Unheard) || (in.Unheard != "") != strings.Contains(in.Context, "\n\n") {
					t.Errorf("of the context %q is in the log, too", in.Unheard)
				}
				if in.Context != tt.want || (in.Resumes != "") != (tt.want != "") {
					t.Errorf("it is told\n%s\nwant\n%s", in.Context, tt.want)
				}
			})
		})
	}
}

// A text that is too long is cut in the middle, and the log says so.
func TestUnheardIsBounded(t *testing.T) {
	long := []string{"the beginning", strings.Repeat("é", 30<<10), "the end"}
	script := says("m1", strings.Join(long, " "))
	for range 30 {
		script = append(script, calls(tapedeck.NewID("c"), strings.Repeat("n", 100))...)
	}
	h := &halfway{scripts: map[string][]string{"text": script}, can: tapedeck.Capabilities{Resume: true}}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(o *engine.Options) { o.Agents[0].Runner = h })
		w.create("s")
		_, err := w.Start(w.Context(), api.Task{Session: "s", Text: "text"})
		w.must(err)
		synctest.Wait()
		_, err = w.Cancel(w.Context(), "s", "")
		w.must(err)
		_, err = w.Start(w.Context(), api.Task{Session: "s", Text: "next"})
		w.must(err)
		synctest.Wait()
		told := h.given[1].Context
		for _, want := range []string{"> the beginning é", "é the end\n", "bytes are left out here", "  … and 10 more\n"} {
			if !strings.Contains(told, want) {
				t.Errorf("it is not told %q", want)
			}
		}
		if len(told) > 32<<10 {
			t.Errorf("it is told %d bytes", len(told))
		}
		lossy := 0
		for _, ev := range w.events("s") {
			if ev.Type == tapedeck.Custom && strings.Contains(string(ev.Data), `"tapedeck.lossy"`) {
				lossy++
			}
		}
		if lossy != 1 {
			t.Errorf("the log says %d times that something is lost", lossy)
		}
	})
}
