// Package api has the requests and answers of the HTTP API as Go structs. The
// engine, the HTTP API, the Go client and the command line share them, so each verb
// is spelled once. docs/openapi.json is generated from them.
//
// The JSON tags are the names on the wire. A member whose tag is "-" is in the path
// of the request, or its comment says that the HTTP API does not have it. A member of a request without omitempty or omitzero must be given.
// Offsets count events from 0; sizes are bytes; times are UTC.
//
// A verb fails with a [*tapedeck.Error]. The kinds that every verb may return are
// not repeated in the documentation of the structs: [tapedeck.Invalid] for an id, a
// name or a number that is not well formed, [tapedeck.NotFound] for a session that
// does not exist, [tapedeck.Gone] for a deleted one that forks need, and
// [tapedeck.Unavailable] if the store cannot write.
package api
