package agents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
	"github.com/tapedeck/tapedeck/payload"
)

// told returns all texts of the requests to the model, beginning with request from.
func (s *stage) told(from int) string {
	var b strings.Builder
	for _, r := range s.model.Requests()[from:] {
		var v any
		if json.Unmarshal(r.Body, &v) == nil {
			writeTexts(&b, v)
		}
	}
	return b.String()
}

// end returns the end of a text: agents begin their requests with long instructions.
func end(text string) string { return text[max(0, len(text)-8000):] }

func writeTexts(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.WriteString(v + "\n")
	case []any:
		for _, x := range v {
			writeTexts(b, x)
		}
	case map[string]any:
		for _, x := range v {
			writeTexts(b, x)
		}
	}
}

// seen returns the text of a session, as people have seen it.
func (s *stage) seen(session string) string {
	s.Helper()
	return text(s.events(session, 0))
}

// events returns the events of a session from an offset on.
func (s *stage) events(session string, from int64) []tapedeck.Event {
	s.Helper()
	var events []tapedeck.Event
	c := s.client()
	for {
		p, err := c.Page(s.Context(), session, client.PageOptions{From: from, Limit: 1000})
		if err != nil {
			s.Fatal(err)
		}
		for _, rec := range p.Records {
			e, err := rec.Event()
			if err != nil {
				s.Fatal(err)
			}
			events = append(events, e)
		}
		if from = p.Next; len(p.Records) == 0 {
			return events
		}
	}
}

// continues gives a session another task. It fails unless the model receives all known texts
// of the previous run. The agent must not repeat earlier text.
func (s *stage) continues(session string, known ...string) {
	s.Helper()
	before := len(s.model.Requests())
	_, events := s.run(session, "and now say hello", nil)
	s.done(events)
	s.noLeftover(events)
	told := s.told(before)
	for _, want := range known {
		if want = strings.TrimSpace(want); want == "" || !strings.Contains(told, want) {
			s.Errorf("the model did not receive %q; it received at the end\n%s", want, end(told))
		}
	}
	if has(events, tapedeck.Custom) {
		return // a new conversation: the agent received the history, with its markers for the model
	}
	if answer := text(events); strings.Count(answer, "Hello!") > 1 || strings.Contains(answer, "word1 ") {
		s.Errorf("the agent repeats earlier text: %q", answer)
	}
}

// turns gives a session several tasks. Each process of the agent loads the conversation of
// the process before, and must not repeat its text.
func (s *stage) turns() {
	session := ""
	for turn := range 4 {
		id, events := s.run(session, "hello", nil)
		session = id
		s.done(events)
		answer := text(events)
		if strings.Count(answer, "Hello! This is answer number") != 1 || len(answer) > 100 {
			s.Errorf("in turn %d the text is %q", turn, answer)
		}
		for i := range events {
			if turn > 0 && events[i].Type == tapedeck.Custom {
				s.Logf("in turn %d the agent gets the history as text: %s", turn, events[i].Data)
			}
		}
	}
}

// inTool begins a run in which the agent runs a long command. It returns when the command
// has begun. session "" is a new one.
func (s *stage) inTool(session string) (_ string, agent payload.AgentStarted, events []tapedeck.Event) {
	s.Helper()
	if session == "" {
		made, err := s.client().Create(s.Context(), api.NewSession{})
		if err != nil {
			s.Fatal(err)
		}
		session = made.ID
	}
	sign := filepath.Join(s.folder(session), "started.txt")
	s.remove(sign)
	_, events = s.run(session, runs(longCommand), func(e *tapedeck.Event) bool {
		if e.Type == tapedeck.AgentStarted {
			agent, _ = payload.DecodeAs[payload.AgentStarted](*e)
		}
		asked := e.Type == tapedeck.PermissionAnswered || e.Type == tapedeck.ToolCallEnd && !s.agent.asks
		return asked && s.appears(sign)
	})
	return session, agent, events
}

// remove removes the files that match pattern.
func (s *stage) remove(pattern string) {
	s.Helper()
	found, err := filepath.Glob(pattern)
	for _, file := range found {
		err = cmp.Or(err, os.Remove(file))
	}
	if err != nil {
		s.Fatal(err)
	}
}

// runs returns a task in which the agent runs a command. The task itself does not have the
// text of the command, so a request that has it shows that the agent remembers the call.
func runs(command string) string { return "[run " + hidden(command) + "]" }

// says returns a task whose answer is a text, which the task itself does not have.
func says(text string) string { return "[answer " + hidden(text) + "]" }

// hidden returns a text as a JSON string without any letter of the text.
func hidden(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

// longCommand has no characters that agents quote in different ways.
const longCommand = "echo x > started.txt; sleep 54.25"

// folder returns a pattern for the folder of a session in which the agent works. The folder
// is made for the first run.
func (s *stage) folder(session string) string {
	return filepath.Join(testserver.Work(s.data), "*", "work", session)
}

// appears waits until a file matches pattern.
func (s *stage) appears(pattern string) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		if found, err := filepath.Glob(pattern); err == nil && len(found) == 1 {
			return true
		}
	}
	s.Fatalf("%s did not appear", pattern)
	return false
}

func (s *stage) cancelledInTool() {
	session, _, events := s.inTool("")
	if _, err := s.client().Cancel(s.Context(), session, ""); err != nil {
		s.Fatal(err)
	}
	s.noLeftover(events)
	s.continues(session, "sleep 54.25")
}

func (s *stage) killedInTool() {
	session, agent, _ := s.inTool("")
	if err := syscall.Kill(-agent.PID, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	s.awaitIdle(session)
	s.continues(session, "sleep 54.25")
}

// remembers gives a session three tasks, then interrupts it in each way while a command
// runs. Each request to the model must have all commands and answers before it.
func (s *stage) remembers() {
	s.choose = "allow_once" // an agent that may always run the command would not ask again
	m := &memory{stage: s}
	for _, n := range []string{"one", "two", "three"} {
		m.turn(n)
	}
	_, _, events := s.inTool(m.session)
	if _, err := s.client().Cancel(s.Context(), m.session, ""); err != nil {
		s.Fatal(err)
	}
	s.noLeftover(events)
	m.known = append(m.known, longCommand)
	m.turn("after a cancel")
	_, agent, _ := s.inTool(m.session)
	if err := syscall.Kill(-agent.PID, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	s.awaitIdle(m.session)
	m.turn("after the agent was killed")
	s.inTool(m.session)
	s.server.Kill()
	s.server = testserver.Start(s.T, s.data, s.args...)
	s.awaitIdle(m.session)
	m.turn("after the server was killed")
}

// A memory is what an agent must remember.
type memory struct {
	*stage
	session string
	known   []string
}

// turn gives the agent a task with a command and an answer. The model must receive all
// that is known, in each of its requests.
func (m *memory) turn(name string) {
	m.Helper()
	before := len(m.model.Requests())
	command, answer := "echo ran "+name, "the answer "+name
	id, events := m.run(m.session, runs(command)+says(answer), nil)
	m.session = id
	m.done(events)
	m.noLeftover(events)
	told := m.told(before)
	for _, want := range m.known {
		if !strings.Contains(told, want) {
			m.Errorf("%s: the model did not receive %q; it received at the end\n%s", name, want, end(told))
		}
	}
	for i := range events {
		if events[i].Type == tapedeck.Custom {
			m.Logf("%s: %s", name, events[i].Data)
		}
	}
	m.known = append(m.known, command, answer)
}
