package store

import "time"

// A Group says what it cost to write the requests of many callers in one transaction.
type Group struct {
	Requests int           // how many there were, at least 1
	Took     time.Duration // from the first decision until readers see the result
	Commit   time.Duration // the part of Took in which the database makes the group durable; 0 if the group changed nothing
	Failed   bool          // nothing of the group is stored
}

// Figures describe a store at a moment. What a store does not have is 0.
type Figures struct {
	Queue     int   // requests that wait for the writer
	Hot       int   // sessions whose state is in memory
	LogBytes  int64 // size of the write-ahead log
	DataBytes int64 // size of the database without that log and without the search index
	Damaged   int   // damaged events that reads have met, see [Damages]
}
