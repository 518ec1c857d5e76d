// Package faultdisk is a disk for tests that fails in the ways in which real disks fail. It
// is a file system in memory that a real process uses through FUSE. It knows for each file
// what the process has written and what has reached the platter, so that a test can cut the
// power: what was not synced is then lost, in whole or in part.
//
// The model follows ext4 with data=ordered. A sync of a file makes its data and all earlier
// changes of names durable, because both are in one journal. Without a sync, each sector of
// 512 bytes that was written is on the platter or not, in any order; changes of names are
// there up to some moment.
package faultdisk
