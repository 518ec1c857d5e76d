package view

// A Query asks for a part of a conversation. The zero value asks for the conversation as
// of now.
type Query struct {
	At     *int64 // the events before this offset count; nil, or a negative offset, for the head
	Thread string // only this thread; "" for all
	Limit  int    // most messages, with the calls and runs beside them; 0 for all that are in memory, see [Window]
	Bytes  int    // most bytes of the items, about, but at least the newest message or call; 0 for no limit
	Before int64  // only items that began before this offset, for paging back; 0 for no bound

	// Runs asks for runs only. Then Limit and [Snapshot.Earlier] count runs.
	// Runs of sub-agents are included only if Thread is theirs.
	Runs bool
}
