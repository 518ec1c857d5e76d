// Package tapedeck is the vocabulary of the durable session for AI agents: the
// [Event], the [Session], the offset, the event catalogue, the error kinds, and
// the contracts that stores ([Store]) and agents ([Runner]) keep.
//
// A session is one log. Every event in it has an offset, a dense integer from
// 0, and never changes. Everything a screen shows is a fold of events, and
// everything a user does to a session (rewind, fork, cancel, rename) is an
// event too.
//
// The package imports only the standard library and nothing else of Tapedeck,
// so every other room of the house may import it. It does no I/O.
package tapedeck
