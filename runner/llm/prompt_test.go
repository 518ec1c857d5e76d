package llm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// events returns all events of the log.
func (s *studio) events() (all []tapedeck.Event) {
	s.t.Helper()
	for e, err := range tapedeck.Events(s.t.Context(), s.store, s.session, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// rebuilt returns the messages for the model as of an offset, built only from the log.
func rebuilt(t *testing.T, events []tapedeck.Event, at int64) string {
	t.Helper()
	fold, err := view.Fold(func(yield func(tapedeck.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}, nil, at)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(view.Context(fold.Snapshot(), view.InThread("")))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s *studio) task(text, config string) string {
	s.t.Helper()
	started, err := s.Start(s.t.Context(), api.Task{Session: s.session, Text: text, Config: json.RawMessage(config)})
	if err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	return started.Invocation
}

// TestRequestsAreInTheLog checks that each request to the model can be built again from the log: the
// log has the system text, and the context of a run that was interrupted.
func TestRequestsAreInTheLog(t *testing.T) {
	const first, second = `{"system":"Be brief."}`, `{"system":"Be exact."}`
	inStudio(t, func(s *studio) {
		s.task(`[tool todo_write {"todos":[{"content":"a","status":"in_progress"}]}]`, first)
		s.cancel(s.task("[parallel] [tool echo {}] [tool wait {}]", first)) // nobody answers the question
		s.task("go on", first)
		s.task("and now", second)
		s.task("and then", "")
		s.task("and at last", "")
		events := s.events()
		var turns []int64 // the offset of the first event of each model call
		seen := map[string]bool{}
		for _, e := range events {
			if key := fmt.Sprint(e.Invocation, e.Turn); e.Turn > 0 && !seen[key] {
				seen[key] = true
				turns = append(turns, e.Offset)
			}
		}
		requests := s.model.Requests()
		if len(requests) != 7 || len(turns) != len(requests) {
			t.Fatalf("%d requests, %d turns", len(requests), len(turns))
		}
		for i, r := range requests {
			told := "[" + strings.Join(messages(t, r.Body), ",") + "]"
			if diff := cmp.Diff(rebuilt(t, events, turns[i]), told); diff != "" {
				t.Errorf("request %d (-log +told)\n%s", i, diff)
			}
		}
	})
}

// TestPromptIsStoredOnce checks that the system text is stored only when it changes.
func TestPromptIsStoredOnce(t *testing.T) {
	const first, second = `{"system":"Be brief."}`, `{"system":"Be exact."}`
	inStudio(t, func(s *studio) {
		one := s.task("one", first)
		s.task("two", first)
		s.task("three", second)
		s.task("four", "")
		s.task("five", "")
		var got []string
		for _, e := range s.events() {
			d, err := payload.DecodeAs[payload.MessageAdded](e)
			if e.Type == tapedeck.MessageAdded && err == nil && d.Message.Role == payload.RoleSystem {
				got = append(got, string(d.Message.Content))
			}
		}
		if want := []string{`"Be brief."`, `"Be exact."`, `""`}; !slices.Equal(got, want) {
			t.Errorf("stored are %q, want %q", got, want)
		}
		s.expect("user: one", "assistant: Hello! This is answer number 1.", "user: two", "assistant: Hello! This is answer number 2.",
			"user: three", "assistant: Hello! This is answer number 3.", "user: four", "assistant: Hello! This is answer number 4.", "user: five")

		if _, err := s.Rewind(s.t.Context(), api.Rewind{Session: s.session, BeforeInvocation: one}); err != nil {
			t.Fatal(err)
		}
		s.task("again", first) // the rewind reverted the stored text
		s.expect("system: Be brief.", "user: again")
		if at := s.events(); payload.PromptOf(payload.RoleSystem, metadataOf(t, at, "again")) == "" {
			t.Error("it is not stored again")
		}
	})
}

// metadataOf returns the metadata of the message before the message with a text.
func metadataOf(t *testing.T, events []tapedeck.Event, text string) json.RawMessage {
	t.Helper()
	for i, e := range events {
		if e.Type == tapedeck.MessageAdded && strings.Contains(string(e.Data), `"`+text+`"`) {
			var d struct {
				Message struct{ Metadata json.RawMessage }
			}
			if err := json.Unmarshal(events[i-1].Data, &d); err != nil {
				t.Fatal(err)
			}
			return d.Message.Metadata
		}
	}
	return nil
}
