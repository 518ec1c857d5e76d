package adk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/adk"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

// TestRun: everything that a run does is in the log, in the form that all views know, with
// and without the plugin.
func TestRun(t *testing.T) {
	for _, withPlugin := range []bool{true, false} {
		t.Run(fmt.Sprint("plugin ", withPlugin), func(t *testing.T) {
			first := callsWeather("Bern")
			first.parts = append([]*genai.Part{{Text: "I should look.", Thought: true}}, first.parts...)
			w := newWorld(t, "", withPlugin, first, says("It rains in Bern."), says("Take one."))
			w.must("How is the weather in Bern?")
			w.must("An umbrella?")
			check(t, "shown", w.shown(), "user: How is the weather in Bern?\nreasoning: I should look.\nassistant: It rains in Bern.\nuser: An umbrella?\nassistant: Take one.")
			check(t, "asked last", w.model.asked[2], "user: How is the weather in Bern?; model: I should look.; model calls weather map[city:Bern]; weather answers map[report:rain in Bern]; model: It rains in Bern.; user: An umbrella?;")
			check(t, "status", w.status(), tapedeck.StatusComplete)
			now := w.snapshot()
			check(t, "calls", len(now.Calls), 1)
			check(t, "call", now.Calls[0].Name+" "+now.Calls[0].Arguments, `weather {"city":"Bern"}`)
			check(t, "runs", len(now.Runs), 2)
			check(t, "state", string(now.State.Value), `{"said":"Take one."}`)
			sum, err := w.log().Summary(t.Context(), deck.Head)
			if err != nil {
				t.Fatal(err)
			}
			check(t, "turns, model calls, runs, tokens in and out", fmt.Sprint(sum.Turns, sum.ModelTurns, sum.Runs, sum.Tokens.Input, sum.Tokens.Output), "2 3 map[complete:2] 30 21")
			var turns []int
			for e := range w.log().Events(t.Context(), 0) {
				if e.Type == tapedeck.ToolCallStart || e.Type == tapedeck.TextMessageStart {
					turns = append(turns, e.Turn)
				}
			}
			check(t, "turns", fmt.Sprint(turns), "[1 2 1]")
			info, _ := w.log().Info(t.Context())
			check(t, "title", info.Title, "How is the weather in Bern?")
			check(t, "owner", info.Owner, "ada")
		})
	}
}

// TestStreaming: followers see the text before the model has finished, and the message has
// it once.
func TestStreaming(t *testing.T) {
	r := streams("It ", "rains ", "<b>here</b>.")
	r.pieces = append([]*genai.Part{{Text: "hm, ", Thought: true}, {Text: "rain", Thought: true}}, r.pieces...)
	r.parts = append([]*genai.Part{{Text: "hm, rain", Thought: true}}, r.parts...)
	w := newWorld(t, "", true, r, says("Yes."))
	w.model.replies[0].during = func() { w.await("It rains <b>here</b>.", 0) }
	w.must("Weather?")
	check(t, "shown", w.shown(), "user: Weather?\nreasoning: hm, rain\nassistant: It rains <b>here</b>.")
	check(t, "got", w.got(), "user: Weather?; model: hm, rain; model: It rains <b>here</b>.;")
	w.must("Sure?")
	check(t, "asked", w.model.asked[1], "user: Weather?; model: hm, rain; model: It rains <b>here</b>.; user: Sure?;")
	for _, m := range w.snapshot().Messages {
		check(t, "status of "+m.Text, m.Status, tapedeck.StatusComplete)
	}
}

// TestChangedText: if a callback changes what was streamed, the final text replaces it.
func TestChangedText(t *testing.T) {
	r := streams("my password ", "is 123")
	r.parts = []*genai.Part{{Text: "I do not say it."}}
	w := newWorld(t, "", true, r)
	w.must("Password?")
	check(t, "shown", w.shown(), "user: Password?\nassistant: I do not say it.")
	check(t, "got", w.got(), "user: Password?; model: I do not say it.;")
	check(t, "status", w.status(), tapedeck.StatusComplete)
}

// TestModelFails: the run has failed, the partial text stays visible, ADK does not get it,
// and the next run works. The error's text is not in the log.
func TestModelFails(t *testing.T) {
	r := streams("It r")
	r.err = errors.New("https://model.example/?key=secret failed")
	w := newWorld(t, "", true, r, says("Again: rain."))
	if _, err := w.run(t.Context(), "Weather?"); err == nil {
		t.Error("the run must fail")
	}
	check(t, "status", w.status(), tapedeck.StatusFailed)
	check(t, "code", w.snapshot().Runs[0].Error.Code, adk.CodeModelError)
	check(t, "shown", w.shown(), "user: Weather?\nassistant: It r")
	w.must("And now?")
	check(t, "asked", w.model.asked[1], "user: Weather?; user: And now?;")
	check(t, "status afterwards", w.status(), tapedeck.StatusComplete)
	for e := range w.log().Events(t.Context(), 0) {
		if strings.Contains(string(e.Data), "secret") {
			t.Errorf("the log has the secret: %s", e.Data)
		}
	}
}

// TestToolFails: the result is marked as an error.
func TestToolFails(t *testing.T) {
	w := newWorld(t, "", true, callsWeather(""), says("I cannot."))
	w.must("Weather?")
	for e := range w.log().Events(t.Context(), 0) {
		if e.Type == tapedeck.ToolCallResult {
			var d struct {
				Metadata json.RawMessage `json:"metadata"`
			}
			e.Unpack(&d)
			check(t, "marked as an error", tapedeck.MetaOf(d.Metadata).Error, true)
			return
		}
	}
	t.Error("the log has no result")
}

// TestCallerCancels: a cancelled context ends the run as cancelled.
func TestCallerCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := streams("It r")
	r.err = context.Canceled
	w := newWorld(t, "", true, r)
	w.model.replies[0].during = func() {
		w.await("It r", 0)
		cancel()
	}
	if _, err := w.run(ctx, "Weather?"); err == nil {
		t.Error("the run must fail")
	}
	check(t, "status", w.status(), tapedeck.StatusCancelled)
	check(t, "shown", w.shown(), "user: Weather?\nassistant: It r")
}

// TestCallerStopsListening: a run that nobody listens to is not complete.
func TestCallerStopsListening(t *testing.T) {
	w := newWorld(t, "", true, callsWeather("Bern"), says("Rain."))
	for _, err := range w.runner.Run(t.Context(), "ada", "s1", genai.NewContentFromText("Weather?", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	check(t, "status", w.status(), tapedeck.StatusFailed)
	check(t, "code", w.snapshot().Runs[0].Error.Code, adk.CodeIncomplete)
}

// TestUserCancels: a cancel in Tapedeck stops the agent at its next event.
func TestUserCancels(t *testing.T) {
	w := newWorld(t, "", true, streams("It ", "rains."), says("never"))
	w.model.replies[0].during = func() {
		if _, err := w.log().Cancel(t.Context(), ""); err != nil {
			t.Error(err)
		}
	}
	_, err := w.run(t.Context(), "Weather?")
	if err == nil || !strings.Contains(err.Error(), "was cancelled") {
		t.Errorf("the run ends with %v", err)
	}
	check(t, "status", w.status(), tapedeck.StatusCancelled)
	w.model.replies = []reply{says("Hello.")}
	w.must("Hi")
	check(t, "status of the next run", w.status(), tapedeck.StatusComplete)
}

// TestRewind: after a rewind the model gets the effective history only, also after an undo
// and after a rewind from elsewhere. The state goes back, that of the user does not.
func TestRewind(t *testing.T) {
	w := newWorld(t, "", true, says("one"), says("two"), says("three"), says("four"), says("five"))
	w.must("1")
	second := w.must("2")
	req := adk.RewindRequest{AppName: "app", UserID: "ada", SessionID: "s1", InvocationID: second}
	marker, err := w.service.Rewind(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "state", string(w.snapshot().State.Value), `{"said":"one"}`)
	w.must("3")
	check(t, "asked after the rewind", w.model.asked[2], "user: 1; model: one; user: 3;")
	if _, err := w.service.Undo(t.Context(), &adk.UndoRequest{AppName: "app", UserID: "ada", SessionID: "s1", Marker: marker}); err != nil {
		t.Fatal(err)
	}
	w.must("4")
	check(t, "asked after the undo", w.model.asked[3], "user: 1; model: one; user: 2; model: two; user: 4;")
	if _, err := w.log().Clear(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	w.must("5")
	check(t, "asked after a clear from elsewhere", w.model.asked[4], "user: 5;")
	req.InvocationID = "unknown"
	if _, err := w.service.Rewind(t.Context(), &req); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("a rewind to an unknown invocation: %v", err)
	}
	req.InvocationID, req.UserID = second, "bob"
	if _, err := w.service.Rewind(t.Context(), &req); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("a rewind by another user: %v", err)
	}
}

// dieIn is the variable of the environment with the folder in which TestReopen dies.
const dieIn = "TAPEDECK_ADK_DIE_IN"

// TestReopen: the next process continues after one that died while the model was writing.
func TestReopen(t *testing.T) {
	if dir := os.Getenv(dieIn); dir != "" {
		w := newWorld(t, dir, true, callsWeather("Bern"), says("Rain."), streams("I am "))
		w.model.replies[2].during = func() {
			w.await("I am ", 0)
			os.Exit(3)
		}
		w.must("Weather?")
		w.must("Who are you?")
		t.Fatal("it must be dead")
	}
	dir := t.TempDir()
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReopen$")
	process.Env = append(os.Environ(), dieIn+"="+dir)
	if out, err := process.CombinedOutput(); process.ProcessState.ExitCode() != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	w := newWorld(t, dir, true, says("A bot."))
	check(t, "status of the run that died", w.status(), tapedeck.StatusRunning)
	before := "user: Weather?; model calls weather map[city:Bern]; weather answers map[report:rain in Bern]; model: Rain.; user: Who are you?;"
	check(t, "got after the restart", w.got(), before)
	w.must("Who?")
	check(t, "asked", w.model.asked[0], before+" user: Who?;")
	check(t, "status", w.status(), tapedeck.StatusComplete)
	check(t, "status of the run that died", w.snapshot().Runs[1].Status, tapedeck.StatusInterrupted)
	check(t, "shown", w.shown(), "user: Weather?\nassistant: Rain.\nuser: Who are you?\nassistant: I am \nuser: Who?\nassistant: A bot.")
}

// TestFork: ADK continues a fork under its own id; the parent does not change.
func TestFork(t *testing.T) {
	w := newWorld(t, "", true, says("one"), says("two"), says("in the fork"))
	w.must("1")
	info, err := w.log().Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.must("2")
	fork, err := w.log().Fork(t.Context(), api.Fork{At: &info.Head})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range w.runner.Run(t.Context(), "ada", fork.ID(), genai.NewContentFromText("3", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(t, "asked in the fork", w.model.asked[2], "user: 1; model: one; user: 3;")
	check(t, "the parent", w.got(), "user: 1; model: one; user: 2; model: two;")
	list, err := w.service.List(t.Context(), &session.ListRequest{AppName: "app", UserID: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range list.Sessions {
		ids = append(ids, s.ID())
	}
	slices.Sort(ids)
	check(t, "list", strings.Join(ids, " "), "s1 "+fork.ID())
	if _, err := w.service.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "bob", SessionID: fork.ID()}); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("another user gets the fork: %v", err)
	}
}
