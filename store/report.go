package store

import "fmt"

// A Report is what a check of all data of a store finds.
type Report struct {
	Sessions  int64    // number of sessions, without streams
	Streams   int64    // number of streams
	Events    int64    // number of records; a record that forks share counts once
	Bytes     int64    // size of these records
	Unsummed  int64    // number of records that were written before there were checksums
	Encrypted int64    // number of records of which only the checksums were checked, without the keys
	Problems  []string // one sentence each; empty if the data is sound
	More      int64    // number of problems beyond those in Problems
}

// maxProblems limits the problems that are reported one by one.
const maxProblems = 100

// Problem adds a problem.
func (r *Report) Problem(format string, args ...any) {
	if len(r.Problems) == maxProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Add adds what another check has found.
func (r *Report) Add(other *Report) {
	r.Sessions += other.Sessions
	r.Streams += other.Streams
	r.Events += other.Events
	r.Bytes += other.Bytes
	r.Unsummed += other.Unsummed
	r.Encrypted += other.Encrypted
	for _, p := range other.Problems {
		r.Problem("%s", p)
	}
	r.More += other.More
}
