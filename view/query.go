package view

// A Query asks for a part of a conversation.
type Query struct {
	At     int64  // as of this offset: the events before it; negative for the head
	Thread string // only this one; "" for all
	Limit  int    // most messages, and most tool calls and runs beside them; 0 for those that are kept at hand, see [Window]
	Before int64  // only what began before this offset, for paging back; 0 for no bound

	// Runs asks for runs only: Limit and [Snapshot.Earlier] count these. Those of
	// sub-agents come only with their thread.
	Runs bool
}
