package api

import "time"

// Stats describe a server since it started. They have neither ids nor content of
// sessions.
type Stats struct {
	Version  string    `json:"version"`
	Instance string    `json:"instance"` // id of the process; each start has another one
	Started  time.Time `json:"started_at"`

	Store     StoreStats      `json:"store"`
	Followers FollowerStats   `json:"followers"`
	Runs      RunStats        `json:"runs"`
	Search    SearchStats     `json:"search"`
	Requests  []ProtocolStats `json:"requests"` // of each protocol, by name; those without a request are left out

	Bodies     int64 `json:"body_bytes"` // memory that bodies of requests take
	Heap       int64 `json:"heap_bytes"` // memory that live objects take
	Goroutines int   `json:"goroutines"`
}

// StoreStats describe the store.
type StoreStats struct {
	Kind string `json:"kind"` // sqlite, postgres or memory

	Groups        int64   `json:"groups"`         // groups of requests that were written in one commit each
	Requests      int64   `json:"requests"`       // appends and other changes in these groups
	Failures      int64   `json:"failures"`       // groups that could not be stored
	GroupSeconds  float64 `json:"group_seconds"`  // time that all groups took together
	CommitSeconds float64 `json:"commit_seconds"` // the part of it that commits took, with their fsync
	Events        int64   `json:"events"`         // events and messages of streams that were appended
	Bytes         int64   `json:"bytes"`          // their size

	Queue      int   `json:"queue"`       // requests that wait for the writer
	LogBytes   int64 `json:"log_bytes"`   // size of the write-ahead log; 0 if the store does not know it
	DataBytes  int64 `json:"data_bytes"`  // size of the database; 0 if the store does not know it
	Cached     int   `json:"cached"`      // sessions whose state is in memory
	Damaged    int   `json:"damaged"`     // damaged events that readers have asked for since the start, each counted once
	TailBytes  int64 `json:"tail_bytes"`  // memory that the newest events take
	TailHits   int64 `json:"tail_hits"`   // reads that this memory answered
	TailMisses int64 `json:"tail_misses"` // reads that went to the database
}

// FollowerStats describe the streams that follow a session, of all protocols.
type FollowerStats struct {
	Open   int `json:"open"`
	Behind int `json:"behind"` // those that have not got everything that there is
}

// RunStats describe the runs, also those of external programs.
type RunStats struct {
	Running int `json:"running"` // open runs of sessions that do not wait for people
	Waiting int `json:"waiting"` // open runs of sessions that wait for an answer of people
	Inputs  int `json:"inputs"`  // inputs that wait for a free thread
	Driven  int `json:"driven"`  // the open runs whose agents this server runs

	Ended map[string]int64 `json:"ended"` // runs that ended, by outcome: complete, failed, cancelled or interrupted
}

// SearchStats describe the search index.
type SearchStats struct {
	Behind int `json:"behind"` // sessions with events that were not indexed when the index was last looked at
}

// ProtocolStats describe the requests of one protocol.
type ProtocolStats struct {
	Protocol string           `json:"protocol"`
	Open     int64            `json:"open"`    // requests without a complete answer, streams included
	Streams  int64            `json:"streams"` // the streams and WebSockets of them
	Answered int64            `json:"answered"`
	Seconds  float64          `json:"seconds"`          // time that the answers took together, streams not included
	Errors   map[string]int64 `json:"errors,omitempty"` // answers with an error, by kind
}
