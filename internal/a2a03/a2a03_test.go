package a2a03

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"
)

// Everything survives the way to version 0.3 and back.
func TestThereAndBack(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	parts := sdk.ContentParts{
		sdk.NewTextPart("<a>"), sdk.NewDataPart(map[string]any{"k": "v"}),
		{Content: sdk.Raw("\x00\x01"), Filename: "a.bin", MediaType: "x/y"}, {Content: sdk.URL("http://h/f"), Filename: "f", MediaType: "x/z"},
	}
	parts[0].Metadata = map[string]any{"m": true}
	user := &sdk.Message{ID: "m1", Role: sdk.MessageRoleUser, Parts: parts, TaskID: "t", ContextID: "c", Metadata: map[string]any{"a": "b"}, Extensions: []string{"x"}}
	agent := &sdk.Message{ID: "m2", Role: sdk.MessageRoleAgent, Parts: parts[:1]}
	artifact := &sdk.Artifact{ID: "a", Name: "n", Description: "d", Parts: parts, Metadata: map[string]any{"a": "b"}}
	events := []sdk.Event{user, agent, &sdk.TaskArtifactUpdateEvent{TaskID: "t", ContextID: "c", Artifact: artifact, Append: true, LastChunk: true}}
	for _, s := range states {
		status := sdk.TaskStatus{State: s, Message: agent, Timestamp: &at}
		events = append(events, &sdk.TaskStatusUpdateEvent{TaskID: "t", ContextID: "c", Status: status, Metadata: map[string]any{"a": "b"}},
			&sdk.Task{ID: "t", ContextID: "c", Status: status, History: []*sdk.Message{user, agent}, Artifacts: []*sdk.Artifact{artifact}})
	}
	if len(events) != 3+2*8 {
		t.Fatalf("there are %d events", len(events))
	}
	for _, e := range events {
		raw, err := json.Marshal(Of(e, true))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(raw)
		if diff := cmp.Diff(e, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", raw, err, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for raw, want := range map[string]string{
		`{`: "unexpected end", `{}`: "no object of the kind", `{"kind":"video"}`: `the kind "video"`,
		`{"kind":"message","parts":[{"kind":"text"}]}`:                                 "no content of that kind",
		`{"kind":"task","history":[{"parts":[{"kind":"x"}]}]}`:                         "no content of that kind",
		`{"kind":"task","artifacts":[{"parts":[{"kind":"x"}]}]}`:                       "no content of that kind",
		`{"kind":"status-update","status":{"message":{"parts":[{"kind":"x"}]}}}`:       "no content of that kind",
		`{"kind":"artifact-update","artifact":{"parts":[{"kind":"x"}]}}`:               "no content of that kind",
		`{"kind":"message","parts":[{"kind":"file","file":{"bytes":"%","name":"n"}}]}`: "not in base64",
		`{"kind":"task","id":7}`: "cannot unmarshal",
	} {
		if _, err := Parse(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", raw, err, want)
		}
	}
	if e, err := Parse(json.RawMessage(`{"kind":"task","history":[null],"status":{"state":"odd"}}`)); err != nil || e.(*sdk.Task).Status.State != sdk.TaskStateUnspecified {
		t.Errorf("got %v %v", e, err)
	}
}

// A push notification config survives the way to version 0.3 and back, with its first scheme.
func TestPushConfig(t *testing.T) {
	for _, c := range []*sdk.PushConfig{
		{TaskID: "t", ID: "p", URL: "https://h/", Token: "tok", Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "x"}},
		{TaskID: "t", ID: "p", URL: "https://h/", Auth: &sdk.PushAuthInfo{}},
		{TaskID: "t", URL: "https://h/"},
	} {
		raw, err := json.Marshal(OfPushConfig(c))
		if err != nil {
			t.Fatal(err)
		}
		var old TaskPushConfig
		if err := json.Unmarshal(raw, &old); err != nil {
			t.Fatal(err)
		}
		got := old.Config.ToV1()
		got.TaskID = sdk.TaskID(old.TaskID)
		if diff := cmp.Diff(c, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", raw, diff)
		}
	}
}

func TestStateToV1(t *testing.T) {
	for text, want := range map[string]sdk.TaskState{
		"input-required": sdk.TaskStateInputRequired, "TASK_STATE_WORKING": sdk.TaskStateWorking, "completed": sdk.TaskStateCompleted,
		"zz": "", "": "", "TASK_STATE_ZZ": "", "unknown": "", "WORKING": "",
	} {
		if got, ok := StateToV1(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %t", text, got, ok)
		}
	}
}
