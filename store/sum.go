package store

import (
	"hash/crc32"

	"github.com/tapedeck/tapedeck"
)

// A Sum is the checksum that a store keeps with each record:
//
//   - bits 0 to 31 cover the bytes of the record, the session that holds it, its offset and
//     the upper half. [Sum.Covers] compares them, on every read.
//   - bits 32 to 62 are the [Link]. It is computed from the link of the record before and
//     from this record. [Sum.Follows] compares it, when all data is verified.
//   - bit 63 is set if an erasure has replaced the bytes. The record keeps its link then, so
//     that the records after it need not change.
//
// The sums of both stores are the same, and a copy of all data keeps them. So this must
// never change. docs/design/0031-checksums.md says why it is this.
type Sum int64

// A Link is the part of a [Sum] that the next record is chained to. It has 31 bits. The
// first record of a session is chained to 0, and so is one that follows a record without a
// sum. The first one that a fork holds itself is chained to the parent's record before it.
type Link uint32

const (
	linkMask  = 1<<31 - 1
	erasedBit = 1 << 63
)

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SumOf returns the sum of a record of the session with a gen.
func SumOf(gen int64, r tapedeck.Record, before Link) Sum {
	crc := crc32.Checksum(r.Data, castagnoli)
	return sumWith(gen, r.Offset, crc, uint64(linkOf(gen, r.Offset, crc, before))<<32)
}

// SumErased returns the sum of a record whose bytes an erasure has replaced. s is the sum
// that it had.
func (s Sum) SumErased(gen int64, r tapedeck.Record) Sum {
	return sumWith(gen, r.Offset, crc32.Checksum(r.Data, castagnoli), uint64(s.Link())<<32|erasedBit)
}

// Link returns what the next record is chained to.
func (s Sum) Link() Link { return Link(uint64(s) >> 32 & linkMask) }

// Erased reports whether an erasure has replaced the bytes of the record.
func (s Sum) Erased() bool { return s < 0 }

// Covers reports whether a record of the session with a gen has the bytes that s was
// computed from.
func (s Sum) Covers(gen int64, r tapedeck.Record) bool {
	upper := uint64(s) &^ (1<<32 - 1)
	return s == sumWith(gen, r.Offset, crc32.Checksum(r.Data, castagnoli), upper)
}

// Follows reports whether s is the sum of a record that was written after one with the link
// before. Of an erased record this is not known any more, so it is taken as true.
func (s Sum) Follows(gen int64, r tapedeck.Record, before Link) bool {
	return s.Erased() || s.Link() == linkOf(gen, r.Offset, crc32.Checksum(r.Data, castagnoli), before)
}

// sumWith adds the lower half. With the same upper half, session and offset, two different
// checksums of the bytes never result in the same sum.
func sumWith(gen, offset int64, crc uint32, upper uint64) Sum {
	return Sum(upper | uint64(crc^uint32(mix(mix(uint64(gen))^uint64(offset))^mix(upper))))
}

func linkOf(gen, offset int64, crc uint32, before Link) Link {
	return Link(mix(mix(mix(uint64(gen))^uint64(offset))^(uint64(before)<<32|uint64(crc))) & linkMask)
}

// mix spreads each bit over all bits: the finalizer of SplitMix64. It is cheaper than a
// second checksum, whose argument would have to be allocated.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Damaged returns the error of a read that meets a record which is not what was written.
func Damaged(session string, offset int64) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Internal, "the event at offset %d of session %q is damaged, so it is not served", offset, session).
		WithHint("`tapedeck verify` names everything that is damaged; restore a backup, or read the rest with `tapedeck salvage`")
}
