package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonrpc"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner"
)

// codeAuth is the error code of an agent that requires authentication.
const codeAuth = -32000

// run runs the conversation from the start of the program to the answer to the prompt.
func (c *conversation) run() error {
	if err := c.process.Begin(func(d payload.AgentStarted) error { return c.n.Process(c.ctx, &c.in, d) }); err != nil {
		return procgroup.Failed(c.runner.options.Command[0], err)
	}
	ready := time.Now().Add(c.runner.options.Start)
	if err := c.greet(time.Until(ready)); err != nil {
		return err
	}
	before, err := c.open(ready)
	if err != nil {
		return err
	}
	task := c.in.Task
	if before != "" {
		task = before + "\n\n" + runner.TaskAfterHistory(&c.in)
	}
	c.muted = false
	c.spent.begin()
	raw, err := c.prompt(task)
	if err == nil {
		err = c.stopped(raw)
	}
	if c.rest(); err == nil && !c.over() {
		c.n.Done() // what it said while it rested
	}
	return c.refused(promptMethod, err)
}

// greet initializes the protocol and authenticates. It offers the agent neither files
// nor terminals: no agent that we tried needs them, because agents use the file system
// and run commands themselves.
func (c *conversation) greet(limit time.Duration) error {
	raw, err := c.call("initialize", sdk.InitializeRequest{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      &sdk.Implementation{Name: "tapedeck", Version: "1"},
	}, limit)
	if err != nil {
		return c.refused("initialize", err)
	}
	var hello struct {
		Version      int `json:"protocolVersion"`
		Capabilities struct {
			Load bool `json:"loadSession"`
		} `json:"agentCapabilities"`
		Info struct {
			Name string `json:"name"`
		} `json:"agentInfo"`
		Meta meta `json:"_meta"`
	}
	if json.Unmarshal(raw, &hello) != nil || hello.Version != sdk.ProtocolVersionNumber {
		return tapedeck.Errorf(tapedeck.Unsupported, "the agent speaks version %d of the protocol, not %d", hello.Version, sdk.ProtocolVersionNumber)
	}
	c.canLoad = hello.Capabilities.Load
	c.steering.can = hello.Meta.Steering.Supported
	c.runner.steers.Store(c.steering.can)
	c.quirks = c.quirks.or(quirksOf(hello.Info.Name))
	if c.runner.options.Auth == "" {
		return nil
	}
	_, err = c.call("authenticate", map[string]string{"methodId": c.runner.options.Auth}, limit)
	return c.refused("authenticate", err)
}

// refused turns an error answer of the agent into an error for users. It returns any
// other error unchanged.
func (c *conversation) refused(method string, err error) error {
	var own *jsonrpc.Error
	if !errors.As(err, &own) {
		return err
	}
	e := tapedeck.Errorf(tapedeck.Unavailable, "the agent answered %s with an error: %s", method, narrate.Brief(wordsOf(own), nil)).Because(err)
	if own.Code == codeAuth {
		return e.WithHint("log in with the agent's own program, or configure an authentication method")
	}
	return e
}

// open resumes the conversation of the thread if it can, and otherwise begins one. For a
// new conversation it returns the history that must precede the task.
func (c *conversation) open(ready time.Time) (before string, err error) {
	lost := ""
	if l := c.in.Link; l != nil && l.Runner == c.runner.link() {
		err := c.reopen(l.NativeID, ready)
		if err == nil {
			return "", c.setMode(ready)
		}
		if errors.Is(err, errLeft) || c.ctx.Err() != nil || c.peer.Err() != nil {
			return "", err
		}
		lost = "the agent could not resume its conversation: " + narrate.Brief(err.Error(), nil)
	}
	if err := c.begin(ready); err != nil {
		return "", err
	}
	if err := c.setMode(ready); err != nil {
		return "", err
	}
	return c.recall(lost)
}

// maxHistory is the limit of the history that an agent receives as text, in bytes.
const maxHistory = 200 << 10

// recall returns the history as text. lost says why the agent's own conversation cannot
// be resumed; "" if it has no conversation.
func (c *conversation) recall(lost string) (string, error) {
	if c.in.History == nil {
		return "", nil
	}
	before, err := narrate.History(c.ctx, c.in.Thread, maxHistory, c.in.History(c.ctx))
	if err != nil || before == "" {
		return "", err
	}
	c.n.Lossy(cmp.Or(lost, "the agent has no conversation of its own with the whole history"), len(before))
	return before, nil
}

// place has the members of every request that opens a conversation.
type place struct {
	ID  string          `json:"sessionId,omitempty"`
	Dir string          `json:"cwd"`
	MCP []sdk.McpServer `json:"mcpServers"`
}

func (c *conversation) place(id string) place {
	return place{ID: id, Dir: c.dir, MCP: append([]sdk.McpServer{}, c.runner.options.MCP...)}
}

// reopen resumes or loads a conversation of the agent. It tries session/resume even if
// the agent does not announce it, because announcements are not reliable. Updates that
// arrive meanwhile are muted, because they repeat the earlier conversation.
func (c *conversation) reopen(id string, ready time.Time) error {
	if id == "" {
		return errors.New("its id is empty")
	}
	c.muted = true
	raw, err := c.call("session/resume", c.place(id), time.Until(ready))
	var own *jsonrpc.Error
	if errors.As(err, &own) && c.canLoad {
		if raw, err = c.call("session/load", c.place(id), time.Until(ready)); err == nil {
			err = c.settle(ready)
		}
	}
	if err != nil {
		return reason(err)
	}
	c.opened(id, raw)
	return nil
}

// opened records the conversation, and the model of the agent if it has said that.
func (c *conversation) opened(id string, answer json.RawMessage) {
	var d struct {
		Models struct {
			Current string `json:"currentModelId"`
		} `json:"models"`
	}
	if json.Unmarshal(answer, &d) == nil && d.Models.Current != "" {
		c.n.Event(narrate.Equipment{Model: d.Models.Current}.Event())
	}
	c.native = id
	c.n.Link(c.runner.link(), id)
}

// settleMethod is a method that no agent knows. An agent answers it, with an error, once it
// has handled everything before it.
const settleMethod = "_tapedeck/settle"

// maxSettle is how long settle waits for an answer to an unknown method.
const maxSettle = 5 * time.Second

// settle waits until the agent has replayed its whole history. The protocol demands the
// replay before the answer to session/load, but some agents answer first. An agent
// writes its messages in order. So the replay is finished when the agent answers a
// request and has replayed nothing since its previous answer.
func (c *conversation) settle(ready time.Time) error {
	for silent := 0; silent < 2; silent++ {
		before := c.replayed
		_, err := c.call(settleMethod, struct{}{}, min(time.Until(ready), maxSettle))
		var own *jsonrpc.Error
		switch {
		case err == nil, errors.As(err, &own): // the protocol demands an error for an unknown method
		case c.over() || c.n.Over() || c.peer.Err() != nil:
			return err
		default:
			return nil // the agent does not answer unknown methods, so settle cannot find out more
		}
		if c.replayed != before {
			silent = -1
		}
	}
	return nil
}

// reason returns an error with the agent's whole explanation.
func reason(err error) error {
	var own *jsonrpc.Error
	if !errors.As(err, &own) {
		return err
	}
	return fmt.Errorf("%s (code %d)", wordsOf(own), own.Code)
}

// wordsOf returns the text of an agent's error. Many agents send "Internal error" as the
// message and give the reason only in the data.
func wordsOf(e *jsonrpc.Error) string {
	if why := detail(e.Data); why != "" && !strings.Contains(e.Message, why) {
		return e.Message + ": " + why
	}
	return e.Message
}

// detail returns the text in the data of an error.
func detail(data json.RawMessage) string {
	for _, at := range []string{"", "/details", "/message", "/error", "/reason"} {
		if s := narrate.String(narrate.Pointer(data, at)); s != "" && !strings.HasPrefix(s, "{") {
			return s
		}
	}
	return ""
}

// begin begins a conversation.
func (c *conversation) begin(ready time.Time) error {
	c.muted = false
	raw, err := c.call("session/new", c.place(""), time.Until(ready))
	if err != nil {
		return c.refused("session/new", err)
	}
	var made struct {
		ID string `json:"sessionId"`
	}
	if json.Unmarshal(raw, &made) != nil || made.ID == "" {
		return tapedeck.Errorf(tapedeck.Unsupported, "the agent began a conversation without an id")
	}
	c.opened(made.ID, raw)
	return nil
}

// setMode sets the mode of the conversation. Every process needs that, because agents do
// not keep the mode.
func (c *conversation) setMode(ready time.Time) error {
	if c.runner.options.Mode == "" {
		return nil
	}
	_, err := c.call("session/set_mode", map[string]string{"sessionId": c.native, "modeId": c.runner.options.Mode}, time.Until(ready))
	return c.refused("session/set_mode", err)
}

// stopped handles the answer to the prompt. It returns an error if the agent stopped
// before it finished.
func (c *conversation) stopped(raw json.RawMessage) error {
	var end struct {
		Reason string `json:"stopReason"`
	}
	_ = json.Unmarshal(raw, &end)
	c.spend(raw)
	if end.Reason == "end_turn" || end.Reason == "cancelled" && c.denied { // some agents stop after a rejection
		c.n.Done()
		return nil
	}
	if c.over() {
		return nil
	}
	text, known := stopReasons[end.Reason]
	if !known {
		text = "the agent stopped for the reason " + narrate.Brief(end.Reason, nil)
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "%s", text)
}

var stopReasons = map[string]string{
	"":                  "the agent stopped without a reason",
	"cancelled":         "the agent stopped as if it had been cancelled",
	"refusal":           "the agent refused to continue",
	"max_tokens":        "the agent stopped because the model's answer became too long",
	"max_turn_requests": "the agent stopped because it had asked the model too often",
}

func drain(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

// over reports whether the run was stopped from outside.
func (c *conversation) over() bool { return c.ctx.Err() != nil }
