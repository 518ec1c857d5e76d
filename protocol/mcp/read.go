package mcp

// Limits of an answer. They fit into the context of a model beside its other work.
const (
	pageBytes   = 64 << 10 // bytes of content in an answer; at least one item is in it
	labelBytes  = 1 << 10  // bytes of the labels of a session
	maxRuns     = 20       // open runs of a session
	maxNames    = 100      // files, tools and models in a summary
	defaultText = 4000     // bytes of one text
	defaultData = 2000     // bytes of the data of an event
	maxText     = 50_000   // bytes of either that a client may ask for
)

// Sizes of a page, and what a client may ask for.
const (
	defaultSessions, maxSessions = 20, 50
	defaultHits, maxHits         = 10, 50
	defaultMessages, maxMessages = 20, 100
	defaultEvents, maxEvents     = 50, 200
	defaultTurns, maxTurns       = 10, 50
)

// addReadTools adds the tools that read.
func (s *server) addReadTools() {
	s.addFindTools()
	s.addConversationTool()
	s.addEventsTool()
	s.addSummaryTool()
	s.addDiffTool()
}
