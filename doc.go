// Package tapedeck has the vocabulary of the durable session log for AI agents:
// the [Event], the [Session], the offset, the event types, the error kinds, and
// the contracts of stores ([Store]) and agents ([Runner]).
//
// A session is one log. Every event in it has an offset, a dense integer from
// 0, and never changes. Every view is a fold of events, and every action of a
// user on a session (rewind, fork, cancel, rename) is an event, too.
//
// The package imports the standard library and internal/jsonobj only, so that
// every other package of the module can import it. It does no I/O.
package tapedeck
