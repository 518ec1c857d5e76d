package llm

import (
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck/runner/llm/chat"
	"github.com/tapedeck/tapedeck/runner/llm/mcp"
	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// A toolbox has the tools of one run.
type toolbox struct {
	tools       []tool.Tool // in the order in which they are offered
	byName      map[string]*tool.Tool
	folder      *tool.Folder
	connections []*mcp.Connection
	always      map[string]bool // calls that people always allow in this run, see reach
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
		c, err := mcp.Connect(s.ctx, server, s.in.Folder, s.started)
		if err != nil {
			return err
		}
		b.connections = append(b.connections, c)
		b.tools = append(b.tools, c.Tools()...)
	}
	for i := range b.tools {
		t := &b.tools[i]
		t.Name = functionName(t.Name)
		if b.byName[t.Name] == nil && o.Policy.decide(t) != Deny { // of two of a name the first counts
			b.byName[t.Name] = t
		}
	}
	return nil
}

// close leaves the servers, all at once: one that takes its time must not use up
// that of the others.
func (b *toolbox) close() {
	var all sync.WaitGroup
	for _, c := range b.connections {
		all.Go(c.Close)
	}
	all.Wait()
	if b.folder != nil {
		_ = b.folder.Close() // nothing was written to it
	}
}

// functions returns what the model is told of the tools. Those that it may not
// use in any case it is not told of.
func (b *toolbox) functions() []chat.Function {
	var out []chat.Function
	for i := range b.tools {
		if t := &b.tools[i]; b.byName[t.Name] == t {
			out = append(out, chat.Function{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	return out
}

// maxFunctionName is the longest name of a function that providers take.
const maxFunctionName = 64

// functionName makes a name one that providers take.
func functionName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxFunctionName)]
}

func (b *toolbox) names() string {
	var names []string
	for _, f := range b.functions() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}
