package store

import (
	"fmt"

	"github.com/tapedeck/tapedeck"
)

// A Chain checks the sums of the records of one session, one after the other.
type Chain struct {
	Gen int64

	link   Link
	broken bool // the record before could not be read, so link is not known
	summed bool // a record had a sum
}

// Begin says what the first record is chained to, if it is not the first of all.
func (c *Chain) Begin(link Link) { c.link, c.broken = link, false }

// Break says that a record could not be read.
func (c *Chain) Break() { c.broken = true }

// Next checks the next record. It returns what is wrong, "" if nothing is.
func (c *Chain) Next(r tapedeck.Record, sum Sum) (problem string) {
	switch {
	case !sum.Covers(c.Gen, r):
		problem = fmt.Sprintf("the event at offset %d is damaged: its bytes do not have its checksum", r.Offset)
		c.broken = true
		c.summed = true
		return problem
	case !c.broken && !sum.Follows(c.Gen, r, c.link):
		problem = fmt.Sprintf("the event at offset %d was not written after the one before it: one of them is from another state of the data", r.Offset)
	}
	c.link, c.broken, c.summed = sum.Link(), false, true
	return problem
}

// NextWithout checks a record that has no sum. Only those at the beginning may have none:
// they were written before there were sums.
func (c *Chain) NextWithout(offset int64) (problem string) {
	if c.summed {
		problem = fmt.Sprintf("the event at offset %d has no checksum, but those before it have", offset)
	}
	c.link, c.broken = 0, c.summed
	return problem
}

// End compares the last record with what the session has noted of it.
func (c *Chain) End(noted Link) (problem string) {
	if c.broken || noted == c.link {
		return ""
	}
	return "its last event is not the one that was written last"
}
