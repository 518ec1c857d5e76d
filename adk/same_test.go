package adk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck/adk"
)

// TestSameAsADK does the same with ADK's service in memory and with ours, and compares
// everything that a program can see.
func TestSameAsADK(t *testing.T) {
	for name, script := range map[string]func(*recorder){
		"every part of an event": everyPart,
		"filters":                filters,
		"state":                  states,
		"names":                  names,
		"bad requests":           badRequests,
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string][]string{}
			for which, s := range map[string]session.Service{
				"ADK":  session.InMemoryService(),
				"ours": serviceOn(t, open(t, "")),
			} {
				r := &recorder{t: t, Service: s}
				script(r)
				if len(r.seen) == 0 {
					t.Fatal("the script sees nothing")
				}
				seen[which] = r.seen
			}
			if diff := cmp.Diff(seen["ADK"], seen["ours"]); diff != "" {
				t.Errorf("ADK (-), ours (+):\n%s", diff)
			}
		})
	}
}

// A recorder writes down what a program sees of a service.
type recorder struct {
	session.Service
	t    *testing.T
	seen []string
}

func (r *recorder) note(what string, v any) {
	r.t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		r.t.Fatal(err)
	}
	r.seen = append(r.seen, what+" "+string(b))
}

func (r *recorder) create(app, user, id string, state map[string]any) session.Session {
	r.t.Helper()
	done, err := r.Create(r.t.Context(), &session.CreateRequest{AppName: app, UserID: user, SessionID: id, State: state})
	if err != nil {
		r.t.Fatal(err)
	}
	r.note("created", sessiontestsuite.Snapshot(done.Session))
	return done.Session
}

func (r *recorder) append(s session.Session, e *session.Event) {
	r.t.Helper()
	if err := r.AppendEvent(r.t.Context(), s, e); err != nil {
		r.t.Fatal(err)
	}
	r.note("the copy has", sessiontestsuite.Snapshot(s))
	r.note("updated", s.LastUpdateTime().UTC())
}

func (r *recorder) get(req session.GetRequest) session.Session {
	r.t.Helper()
	done, err := r.Get(r.t.Context(), &req)
	if err != nil {
		r.t.Fatal(err)
	}
	now := sessiontestsuite.Snapshot(done.Session)
	for i, e := range now.Events {
		kept := *e
		kept.Actions.StateDelta = maps.Clone(e.Actions.StateDelta)
		// ADK's service in memory leaves temporary state in events, against its own
		// documentation; its service on a database does not.
		maps.DeleteFunc(kept.Actions.StateDelta, func(k string, _ any) bool { return strings.HasPrefix(k, session.KeyPrefixTemp) })
		if _, ours := r.Service.(*adk.Service); ours && len(kept.Actions.StateDelta) != len(e.Actions.StateDelta) {
			r.t.Errorf("event %s has temporary state: %v", e.ID, e.Actions.StateDelta)
		}
		now.Events[i] = &kept
	}
	r.note("get", now)
	return done.Session
}

func (r *recorder) list(app, user string) {
	r.t.Helper()
	done, err := r.List(r.t.Context(), &session.ListRequest{AppName: app, UserID: user})
	if err != nil {
		r.t.Fatal(err)
	}
	all := map[string]any{}
	for _, s := range done.Sessions {
		all[s.AppName()+"/"+s.UserID()+"/"+s.ID()] = sessiontestsuite.Snapshot(s)
	}
	r.note(fmt.Sprint("list of ", len(done.Sessions)), all)
}

var start = time.Date(2026, 1, 5, 12, 0, 0, 123456789, time.UTC)

// at returns an event n seconds after the start.
func at(n int, author string, parts ...*genai.Part) *session.Event {
	e := &session.Event{ID: fmt.Sprint("event", n), InvocationID: "inv1", Author: author, Timestamp: start.Add(time.Duration(n) * time.Second)}
	if parts != nil {
		role := genai.RoleModel
		if author == "user" {
			role = genai.RoleUser
		}
		e.Content = &genai.Content{Role: role, Parts: parts}
	}
	return e
}

func everyPart(r *recorder) {
	s := r.create("app", "ada", "s1", nil)
	image := &genai.Part{InlineData: &genai.Blob{Data: []byte{1, 2, 3}, MIMEType: "image/png", DisplayName: "a.png"}}
	file := &genai.Part{FileData: &genai.FileData{FileURI: "gs://a/b.pdf", MIMEType: "application/pdf"}}
	thought := &genai.Part{Text: "hm <b>", Thought: true, ThoughtSignature: []byte("sig")}
	call := func(id string, args map[string]any) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: "look", Args: args}, ThoughtSignature: []byte("s2")}
	}
	answer := func(id string, o map[string]any) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "look", Response: o, Scheduling: genai.FunctionResponseSchedulingSilent}}
	}
	deep := map[string]any{"a": []any{1.5, "x", nil, map[string]any{"b": true}}, "<": "&", "": ""}
	r.append(s, at(1, "user", &genai.Part{Text: "look at this"}, image, file, &genai.Part{Text: "and say"}))
	r.append(s, at(2, "user", &genai.Part{Text: "one text"}))
	r.append(s, at(3, "bot", thought, &genai.Part{Text: "I look. 🎉\n"}, call("c1", deep), call("c2", map[string]any{}), call("c3", nil), call("c1", deep)))
	r.append(s, at(4, "bot", answer("c1", deep), answer("c2", map[string]any{}), answer("c3", nil), answer("never called", map[string]any{"error": "no"})))
	r.append(s, at(5, "bot", call("", deep), answer("", deep), &genai.Part{}, image, file))
	r.append(s, at(6, "bot", &genai.Part{ExecutableCode: &genai.ExecutableCode{Code: "1+1", Language: genai.LanguagePython}},
		&genai.Part{CodeExecutionResult: &genai.CodeExecutionResult{Outcome: genai.OutcomeOK, Output: "2"}}))
	full := at(7, "bot", &genai.Part{Text: "done"})
	full.Branch, full.IsolationScope, full.Routes, full.LongRunningToolIDs = "a.b", "scope", []string{"left"}, []string{"c1"}
	full.Output = map[string]any{"n": 1.5}
	full.NodeInfo = &session.NodeInfo{Path: "a/b@1", MessageAsOutput: true, OutputFor: []string{"a"}}
	full.RequestedInput = &session.RequestInput{InterruptID: "i1", Message: "sure?", Payload: "p"}
	full.Actions = session.EventActions{
		StateDelta: map[string]any{}, ArtifactDelta: map[string]int64{"f": 2}, TransferToAgent: "other", Escalate: true, SkipSummarization: true,
		RequestedToolConfirmations: map[string]toolconfirmation.ToolConfirmation{"c1": {Hint: "really?"}},
	}
	full.LLMResponse = model.LLMResponse{
		Content: full.Content, ModelVersion: "m-1", FinishReason: genai.FinishReasonStop, AvgLogprobs: -0.5, TurnComplete: true, Interrupted: true,
		ErrorCode: "E", ErrorMessage: "bad", SessionResumptionHandle: "h", CustomMetadata: map[string]any{"k": []any{1.0}},
		UsageMetadata:       &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 3, CandidatesTokenCount: 4, ThoughtsTokenCount: 1, TotalTokenCount: 8},
		CitationMetadata:    &genai.CitationMetadata{Citations: []*genai.Citation{{Title: "t", URI: "u"}}},
		InputTranscription:  &genai.Transcription{Text: "in"},
		OutputTranscription: &genai.Transcription{Text: "out", Finished: true},
	}
	r.append(s, full)
	r.append(s, at(8, "bot"))
	r.append(s, &session.Event{Author: "bot", Timestamp: start.Add(9 * time.Second), LLMResponse: model.LLMResponse{Content: genai.NewContentFromText("no ids", genai.RoleModel)}})
	odd := at(10, "user", &genai.Part{Text: "odd invocation"})
	odd.InvocationID = "an invocation with / and 🎉"
	r.append(s, odd)
	r.get(session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
}

func filters(r *recorder) {
	s := r.create("app", "ada", "s1", nil)
	for i := range 6 {
		r.append(s, at(i, "user", &genai.Part{Text: fmt.Sprint("text ", i)}))
	}
	for n := range 8 {
		for i := -1; i < 7; i++ {
			r.get(session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1", NumRecentEvents: n, After: start.Add(time.Duration(i) * time.Second)})
		}
		r.get(session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1", NumRecentEvents: n})
	}
}

func states(r *recorder) {
	change := func(n int, d map[string]any) *session.Event {
		e := at(n, "bot")
		e.Actions.StateDelta = d
		return e
	}
	a := r.create("app", "ada", "s1", map[string]any{"k": "v", "app:x": 1.0, "user:y": "why", "with/slash~": true})
	r.append(a, change(1, map[string]any{"k": nil, "new": []any{"list"}, "app:x": 2.0, "user:z": map[string]any{"deep": 1.0}, "temp:t": "gone"}))
	r.append(a, change(2, map[string]any{"temp:only": 1.0}))
	r.get(session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	b := r.create("app", "ada", "s2", nil)
	r.append(b, change(3, map[string]any{"app:x": 3.0, "with/slash~": false, "": "empty"}))
	r.create("app", "bob", "s1", nil)
	r.create("other", "ada", "s1", map[string]any{"user:y": "mine"})
	r.get(session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	r.get(session.GetRequest{AppName: "app", UserID: "bob", SessionID: "s1"})
	for _, user := range []string{"", "ada", "bob", "nobody"} {
		r.list("app", user)
	}
	if err := a.State().Set("local", 1.0); err != nil {
		r.t.Fatal(err)
	}
	_, err := a.State().Get("missing")
	local, _ := a.State().Get("local")
	r.note("local and missing", []any{local, err == session.ErrStateKeyNotExist})
	for _, id := range []string{"s1", "s2", "s2", "never"} {
		if err := r.Delete(r.t.Context(), &session.DeleteRequest{AppName: "app", UserID: "ada", SessionID: id}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.list("app", "")
	r.create("app", "ada", "s1", nil)
}

func names(r *recorder) {
	all := [][3]string{
		{"app", "ada@example.com", "s1"}, {"app", "ada", "s1"}, {"app:ada", "s1", "x"}, {"app", "ada:s1", "x"}, {"a b", "日本", "🎉/../x"},
		{"app", "@3A", "s1"}, {"app", ":", "s1"}, {"app", "ada", fmt.Sprintf("%0200d", 1)}, {"app", "ada", fmt.Sprintf("%0200d", 2)},
	}
	for i, n := range all {
		s := r.create(n[0], n[1], n[2], nil)
		r.append(s, at(i, "user", &genai.Part{Text: fmt.Sprint("of ", i)}))
	}
	for _, n := range all {
		r.get(session.GetRequest{AppName: n[0], UserID: n[1], SessionID: n[2]})
	}
	r.list("app", "")
}

func badRequests(r *recorder) {
	ctx := context.Background()
	s := r.create("app", "ada", "s1", nil)
	fails := func(what string, err error) { r.note(what+" fails", err != nil) }
	_, err := r.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	fails("the same id", err)
	for _, k := range [][3]string{{"", "ada", "s1"}, {"app", "", "s1"}, {"app", "ada", ""}, {"app", "bob", "s1"}, {"other", "ada", "s1"}} {
		_, err = r.Get(ctx, &session.GetRequest{AppName: k[0], UserID: k[1], SessionID: k[2]})
		fails(fmt.Sprint("get ", k), err)
		fails(fmt.Sprint("delete ", k), r.Delete(ctx, &session.DeleteRequest{AppName: k[0], UserID: k[1], SessionID: k[2]}))
	}
	_, err = r.Create(ctx, &session.CreateRequest{AppName: "app"})
	fails("no user", err)
	_, err = r.List(ctx, &session.ListRequest{UserID: "ada"})
	fails("a list of no app", err)
	fails("no session", r.AppendEvent(ctx, nil, at(1, "bot")))
	fails("no event", r.AppendEvent(ctx, s, nil))
	partial := at(1, "bot", &genai.Part{Text: "par"})
	partial.Partial = true
	fails("a partial event", r.AppendEvent(ctx, s, partial))
	r.get(session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if err := r.Delete(ctx, &session.DeleteRequest{AppName: "app", UserID: "ada", SessionID: "s1"}); err != nil {
		r.t.Fatal(err)
	}
	fails("a deleted session", r.AppendEvent(ctx, s, at(2, "bot")))
}
