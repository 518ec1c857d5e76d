package acp_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play the agents of the tests: it plays a script of
// testdata, or the recorded messages of a real agent.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("DECK_TEST_SCRIPT") != "":
		playScript(os.Getenv("DECK_TEST_SCRIPT"))
	case os.Getenv("DECK_TEST_WIRE") != "":
		playWire(os.Getenv("DECK_TEST_WIRE"), os.Getenv("DECK_TEST_PART"))
	default:
		os.Exit(m.Run())
	}
}

// A rule of a script says how the agent reacts to a request.
type rule struct {
	On   string `json:"on"`   // the method
	Task string `json:"task"` // a part of the parameters; "" for any
	Do   []step `json:"do"`
}

// A step is one action of the agent. If it has several members, they are executed in
// the order of the fields.
type step struct {
	Line    string          `json:"line"`    // writes this line to its output
	Stderr  string          `json:"stderr"`  // writes this line to its standard error
	Update  json.RawMessage `json:"update"`  // sends this update of the conversation
	Words   int             `json:"words"`   // sends this many chunks of text; -1 until it is cancelled
	Ask     json.RawMessage `json:"ask"`     // asks for a permission, and waits
	Options map[string]step `json:"options"` // the next step, by the chosen option; "" if none was chosen
	Echo    bool            `json:"echo"`    // repeats the prompt
	Ignore  bool            `json:"ignore"`  // ignores SIGTERM from now on
	Spawn   bool            `json:"spawn"`   // starts a process that keeps its output open and ignores SIGTERM
	Cancel  bool            `json:"cancel"`  // waits until it is cancelled
	Heard   bool            `json:"heard"`   // waits until it was steered
	Hears   bool            `json:"hears"`   // ends that wait
	Recall  bool            `json:"recall"`  // repeats the earlier conversation, if it has resumed it
	Did     bool            `json:"did"`     // makes a file, as a sign that it did something
	Reply   json.RawMessage `json:"reply"`
	Error   json.RawMessage `json:"error"`
	Exit    *int            `json:"exit"`
	Flood   int             `json:"flood"` // writes one line of this many MiB
	Hang    bool            `json:"hang"`  // does not exit at the end of its input
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

type player struct {
	mu      sync.Mutex
	rules   []rule
	cancel  chan struct{}
	heard   chan struct{}
	replies chan message
	hang    bool
	resumed bool
}

func playScript(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	p := &player{cancel: make(chan struct{}), heard: make(chan struct{}), replies: make(chan message)}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		var r rule
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			panic(fmt.Sprintf("%s: %v in %s", path, err, line))
		}
		p.rules = append(p.rules, r)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		p.take(in.Bytes())
	}
	if p.hang {
		<-time.After(time.Hour)
	}
	os.Exit(0)
}

func (p *player) take(line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		panic(err)
	}
	switch m.Method {
	case "session/cancel":
		close(p.cancel)
	case "":
		p.replies <- m
	default:
		p.resumed = p.resumed || m.Method == "session/resume"
		for _, r := range p.rules {
			if r.On == m.Method && strings.Contains(string(m.Params), r.Task) {
				if r.On == "session/prompt" {
					go p.play(m, r.Do) // it reads messages meanwhile
				} else {
					p.play(m, r.Do)
				}
				return
			}
		}
		p.send(message{ID: m.ID, Error: json.RawMessage(`{"code":-32601,"message":"\"Method not found\": ` + m.Method + `"}`)})
	}
}

func (p *player) send(m message) {
	m.JSONRPC = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	p.line(string(b))
}

func (p *player) line(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Println(s)
}

func (p *player) update(session, update string) {
	p.send(message{Method: "session/update", Params: json.RawMessage(`{"sessionId":` + session + `,"update":` + update + `}`)})
}

func (p *player) play(m message, steps []step) {
	var params struct {
		Session json.RawMessage                  `json:"sessionId"`
		Prompt  []struct{ Text json.RawMessage } `json:"prompt"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		panic(err)
	}
	session := cmp.Or(string(params.Session), `"s1"`)
	for _, s := range steps {
		p.step(m, s, session)
		if s.Echo {
			p.update(session, `{"sessionUpdate":"agent_message_chunk","messageId":"echo","content":{"type":"text","text":`+string(params.Prompt[0].Text)+`}}`)
		}
	}
}

func (p *player) step(m message, s step, session string) {
	if s.Flood > 0 {
		p.line(`{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("x", s.Flood<<20) + `"}`)
	}
	if s.Line != "" {
		p.line(s.Line)
	}
	if s.Stderr != "" {
		fmt.Fprintln(os.Stderr, s.Stderr)
	}
	if s.Update != nil {
		p.update(session, string(s.Update))
	}
	p.words(s.Words, session)
	if s.Ask != nil {
		p.ask(m, s, session)
	}
	if s.Ignore {
		signal.Ignore(syscall.SIGTERM)
	}
	if s.Spawn {
		c := exec.Command("/bin/sh", "-c", "trap '' TERM; echo here >&3; while :; do sleep 1000; done")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		r, w, _ := os.Pipe()
		c.ExtraFiles = []*os.File{w}
		if err := c.Start(); err != nil {
			panic(err)
		}
		_, _ = bufio.NewReader(r).ReadString('\n')
	}
	if s.Cancel {
		<-p.cancel
	}
	if s.Heard {
		<-p.heard
	}
	if s.Recall && p.resumed {
		p.update(session, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"One  two, three"}}`)
	}
	if s.Did {
		if err := os.WriteFile(os.Getenv("DECK_TEST_DID"), nil, 0o600); err != nil {
			panic(err)
		}
	}
	p.hang = p.hang || s.Hang
	if s.Reply != nil {
		p.send(message{ID: m.ID, Result: s.Reply})
	}
	if s.Hears {
		close(p.heard)
	}
	if s.Error != nil {
		p.send(message{ID: m.ID, Error: s.Error})
	}
	if s.Exit != nil {
		os.Exit(*s.Exit)
	}
}

func (p *player) words(n int, session string) {
	for i := 0; i != n; i++ {
		select {
		case <-p.cancel:
			return
		default:
		}
		p.update(session, fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"w%d "}}`, i))
	}
}

func (p *player) ask(m message, s step, session string) {
	p.send(message{ID: json.RawMessage(`"ask"`), Method: "session/request_permission", Params: json.RawMessage(
		`{"sessionId":` + session + `,` + strings.TrimPrefix(string(s.Ask), "{"))})
	var r struct {
		Outcome struct {
			OptionID string
		}
	}
	_ = json.Unmarshal((<-p.replies).Result, &r)
	p.step(m, s.Options[r.Outcome.OptionID], session)
}

// playWire plays one part of a recorded conversation: the messages of one process of the
// agent. Where the recorded client sent a message, it waits for one.
func playWire(path, part string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	ids := map[string]json.RawMessage{} // from recorded ids of requests to those of now
	for _, w := range wire(path, part) {
		if w.Dir == "<" {
			if w.M.Method == "" {
				w.M.ID = ids[string(w.M.ID)]
			}
			b, err := json.Marshal(w.M)
			if err != nil {
				panic(err)
			}
			fmt.Println(string(b))
			continue
		}
		m := next(in)
		if m.Method != "" && m.ID != nil && m.Method != w.M.Method {
			fmt.Fprintf(os.Stderr, "the client said %s, then it was %s\n", m.Method, w.M.Method)
			os.Exit(1)
		}
		ids[string(w.M.ID)] = m.ID
	}
	for in.Scan() { // read to the end of the input
	}
	os.Exit(0)
}

// next returns the next message of the client. It refuses extensions of the protocol,
// because the recordings do not have them.
func next(in *bufio.Scanner) message {
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		if !strings.HasPrefix(m.Method, "_") {
			return m
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", m.ID)
	}
	os.Exit(0)
	return message{}
}

type wireLine struct {
	Dir string
	M   message
}

// wire returns a part of a recorded conversation.
func wire(path, part string) []wireLine {
	b, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	var parts [][]wireLine
	for line := range strings.Lines(string(b)) {
		var w wireLine
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			panic(err)
		}
		if w.M.Method == "initialize" {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], w)
	}
	return parts[int(part[0]-'1')]
}

// recorded returns the path of a recorded conversation. It skips the test if the
// recording is not available.
func recorded(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../shared/transcripts/agent-wire", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("there is no recording of %s here", name)
	}
	return path
}
