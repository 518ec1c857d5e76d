package llm

import (
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm/chat"
	"github.com/tapedeck/tapedeck/runner/llm/mcp"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// A toolbox has the tools of a run.
type toolbox struct {
	tools       []tool.Tool // the tools in the order in which the model gets them
	byName      map[string]*tool.Tool
	folder      *tool.Folder
	connections []*mcp.Connection
	always      map[string]bool // keys of calls that people always allow in this run; see scopeOf
}

// equip fills the toolbox of the run.
func (s *run) equip() error {
	b, o := &s.toolbox, &s.runner.options
	b.byName, b.always = map[string]*tool.Tool{}, map[string]bool{}
	if s.in.Folder != "" {
		f, err := tool.OpenFolder(s.in.Folder, o.Files)
		if err != nil {
			return err
		}
		b.folder = f
		b.tools = append(b.tools, f.Tools()...)
	}
	b.tools = append(append(b.tools, tool.Todo()), o.Tools...)
	if s.in.Delegate != nil {
		b.tools = append(b.tools, s.delegate())
	}
	for _, server := range o.Servers {
		c, err := mcp.Connect(s.ctx, server, mcp.Run{Session: s.in.Session, Folder: s.in.Folder, Started: s.started})
		if err != nil {
			return err
		}
		b.connections = append(b.connections, c)
		b.tools = append(b.tools, c.Tools()...)
	}
	for i := range b.tools {
		t := &b.tools[i]
		t.Name = functionName(t.Name)
		if b.byName[t.Name] == nil && o.Policy.decide(t) != Deny { // the first tool of a name counts
			b.byName[t.Name] = t
		}
	}
	if len(o.Servers) == 0 {
		return nil // RUN_STARTED has all of them
	}
	return s.yield(payload.NewEvent(narrate.Equipment{Model: s.config.Model, Tools: b.names()}.Event()))
}

// close disconnects from all servers concurrently, so that a slow server does not delay
// the others.
func (b *toolbox) close() {
	var all sync.WaitGroup
	for _, c := range b.connections {
		all.Go(c.Close)
	}
	all.Wait()
	if b.folder != nil {
		_ = b.folder.Close() // the handle itself is only read
	}
}

// functions returns the descriptions of the tools for the model. It leaves out tools that
// the policy denies.
func (b *toolbox) functions() []chat.Function {
	var out []chat.Function
	for i := range b.tools {
		if t := &b.tools[i]; b.byName[t.Name] == t {
			out = append(out, chat.Function{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	return out
}

// maxFunctionName is the length of the longest function name that providers accept.
const maxFunctionName = 64

// functionName returns a name in the form that providers accept.
func functionName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxFunctionName)]
}

// names returns the names of the tools that the model gets.
func (b *toolbox) names() (names []string) {
	for _, f := range b.functions() {
		names = append(names, f.Name)
	}
	return names
}
