package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

const maxResult = 256 << 10 // limit of a result, in bytes

// execute executes a call if that is allowed, and yields the result.
func (s *run) execute(c *call) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	arguments := strings.TrimSpace(c.args.String())
	if arguments == "" {
		arguments = "{}"
	}
	t := s.toolbox.byName[c.name]
	switch {
	case t == nil:
		return s.result(c, tool.Failed("There is no tool %s. There are: %s.", c.name, strings.Join(s.toolbox.names(), ", ")), 0)
	case !isObject(arguments):
		return s.result(c, tool.Failed("The arguments are not a JSON object."), 0)
	}
	if t.Check != nil {
		if why := t.Check(json.RawMessage(arguments)); why != "" {
			return s.result(c, tool.Failed("%s", why), 0)
		}
	}
	if allowed, err := s.permit(t, c, arguments); !allowed || err != nil {
		return err
	}
	began := time.Now()
	r := t.Run(s.ctx, tool.Call{ID: c.id, Arguments: json.RawMessage(arguments), Started: s.started})
	if r.Plan != nil {
		if err := s.emit(payload.PlanUpdated{Entries: r.Plan}); err != nil {
			return err
		}
	}
	return s.result(c, r, time.Since(began))
}

func isObject(arguments string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal([]byte(arguments), &m) == nil && m != nil
}

// result yields the result of a call.
func (s *run) result(c *call, r tool.Result, took time.Duration) error {
	text := strings.ToValidUTF8(r.Text, "\uFFFD")
	if len(text) > maxResult {
		text = strings.ToValidUTF8(text[:maxResult], "") + fmt.Sprintf("\n[… %d bytes left out …]", len(r.Text)-maxResult)
	}
	m := payload.NewMessage(s.in.ID+".t."+c.id, payload.RoleTool, text)
	d := payload.ToolCallResult{MessageID: m.ID, ToolCallID: c.id, Content: m.Content, Role: m.Role}
	if r.Failed || took > time.Millisecond {
		d.Metadata = tapedeck.Meta{Error: r.Failed, DurationMS: new(took.Milliseconds())}.In(nil)
	}
	return s.emit(d)
}
