package deck_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck/deck"
)

// exactDiagram asks for a number, and then waits for the message for another one.
const exactDiagram = `<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' xmlns:tapedeck='https://tapedeck.dev/bpmn' targetNamespace='t'>
<message id='m' name='paid' tapedeck:correlation='= id'/>
<process id='P' isExecutable='true'>
<startEvent id='S'><extensionElements><tapedeck:form><tapedeck:field id='id' type='integer' min='1' required='true'/></tapedeck:form></extensionElements></startEvent>
<userTask id='U'><extensionElements><tapedeck:form><tapedeck:field id='typed' type='integer' max='9007199254740994'/><tapedeck:field id='price' type='number' max='0.3'/></tapedeck:form></extensionElements></userTask>
<receiveTask id='W' messageRef='m'/><endEvent id='E'/>
<sequenceFlow id='F1' sourceRef='S' targetRef='U'/><sequenceFlow id='F2' sourceRef='U' targetRef='W'/><sequenceFlow id='F3' sourceRef='W' targetRef='E'/>
</process></definitions>`

// TestExactNumbers: the HTTP API takes whole numbers above 2^53 into a workflow, through a
// form and out of it again as they are, and a message for another number changes nothing.
func TestExactNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true, NoScreen: true, AnyHost: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close(t.Context()) }()
		ask := func(method, path, body string, status int) string {
			t.Helper()
			got, answer := do(d, method, "/api/v1"+path, body)
			if got != status {
				t.Fatalf("%s %s: %d %s, want %d", method, path, got, answer, status)
			}
			return answer
		}
		bpmn, _ := json.Marshal(exactDiagram)
		run := func(id string) string { return `{"bpmn":` + string(bpmn) + `,"variables":{"id":` + id + `}}` }
		for id, want := range map[string]string{"9007199254740993.5": "a whole number", "1e34": "a whole number has at most 34 digits", "1e7000": "34 digits", "0": "at least 1"} {
			if answer := ask("POST", "/workflows/run", run(id), 400); !strings.Contains(answer, want) {
				t.Errorf("%s: %s", id, answer)
			}
		}
		var started struct {
			Session string `json:"session_id"`
		}
		if err := json.Unmarshal([]byte(ask("POST", "/workflows/run", run("9007199254740993"), 202)), &started); err != nil {
			t.Fatal(err)
		}
		session := "/sessions/" + started.Session
		synctest.Wait()
		type waiting struct{ Permission, Correlation string }
		type workflow struct {
			Activations []struct{ Waits []waiting }
			Outcome     string
			Variables   map[string]json.RawMessage
		}
		var state workflow
		look := func() {
			synctest.Wait()
			var answer struct{ Workflow workflow }
			if err := json.Unmarshal([]byte(ask("GET", session+"/workflow", "", 200)), &answer); err != nil {
				t.Fatal(err)
			}
			state = answer.Workflow
		}
		wait := func() waiting {
			t.Helper()
			for _, a := range state.Activations {
				if len(a.Waits) > 0 {
					return a.Waits[0]
				}
			}
			t.Fatalf("it waits for nothing: %+v", state)
			return waiting{}
		}
		look()
		answer := session + "/permissions/" + wait().Permission
		for input, want := range map[string]string{
			`{"typed":9007199254740995}`: "at most 9007199254740994", `{"typed":1.5}`: "a whole number", `{"typed":1e1000000000}`: "34 digits", `{"price":0.3000000000000000000001}`: "at most 0.3", `{"typed":"1"}`: "a number",
		} {
			if got := ask("POST", answer, `{"option":"submit","input":`+input+`}`, 400); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", input, got, want)
			}
		}
		ask("POST", answer, `{"option":"submit","input":{"typed":9007199254740993,"price":0.3}}`, 200)
		look()
		if got := wait().Correlation; got != "9007199254740993" {
			t.Fatalf("it waits for %q", got)
		}
		if got := ask("POST", session+"/messages", `{"name":"paid","correlation":""}`, 400); !strings.Contains(got, "the correlation of the message is an empty text") {
			t.Error(got)
		}
		ask("POST", session+"/messages", `{"name":"paid","correlation":"9007199254740992"}`, 200) // it is kept for an element that may come
		look()
		if state.Outcome != "" {
			t.Fatalf("the message for another number has ended it: %+v", state)
		}
		ask("POST", session+"/messages", `{"name":"paid","correlation":"9007199254740993","variables":{"of":9007199254740993}}`, 200)
		look()
		for name, want := range map[string]string{"id": "9007199254740993", "typed": "9007199254740993", "price": "0.3", "of": "9007199254740993"} {
			if got := string(state.Variables[name]); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		if state.Outcome != "completed" {
			t.Errorf("the outcome is %q", state.Outcome)
		}
	})
}
