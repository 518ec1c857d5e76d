package store

// A Salvage is what was read out of damaged data.
type Salvage struct {
	Sessions int64 // number of sessions that were written, without streams
	Streams  int64 // number of streams
	Events   int64 // number of their records; a record that forks share counts once
	Whole    int64 // sessions and streams that have all that they had

	Cut       []SalvageCut // those that have only a beginning
	Lost      []SalvageCut // those of which nothing can be read
	Nameless  int64        // sessions whose entry cannot be read; they have new ids
	Stray     int64        // records that could be read and belong after a cut, or to nothing
	Workflows int64        // versions of stored workflows
	Blind     int64        // bytes of the files that the disk does not return
}

// A SalvageCut is a session that ends too early.
type SalvageCut struct {
	Session string `json:"session"`
	Offset  int64  `json:"offset"` // the first event that is missing or damaged
	Head    int64  `json:"head"`   // the number of events that it had; 0 if that is not known
	Reason  string `json:"reason"`
}
