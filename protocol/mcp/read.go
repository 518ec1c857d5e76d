package mcp

// Limits of an answer. They fit into the context of a model beside its other work.
const (
	pageBytes   = 64 << 10 // bytes of content in an answer; at least one item is in it
	labelBytes  = 1 << 10  // bytes of the labels of a session
	maxRuns     = 20       // open runs of a session
	maxNames    = 100      // files, tools and models in a summary
	defaultText = 4000     // bytes of one text
	maxText     = 50_000
)

// addReadTools adds the tools that read.
func (s *server) addReadTools() {
	s.addFindTools()
	s.addConversationTool()
	s.addEventsTool()
	s.addSummaryTool()
	s.addDiffTool()
}
