package faultdisk

import (
	"maps"
	"math/rand/v2"
	"sync"
	"syscall"
)

// sector is what a disk writes whole or not at all, in bytes.
const sector = 512

// A Disk is what the files of a file system contain: as processes see them, and on the
// platter.
type Disk struct {
	mu      sync.Mutex
	root    *file
	last    uint64 // the newest inode number
	journal []change
	broken  map[*file]map[int64]bool // sectors that cannot be read
	faults  faults
}

// faults are the ways in which a disk fails now.
type faults struct {
	lies   bool
	syncs  int           // so many syncs fail
	writes syscall.Errno // each write fails so
}

// A file is a file or a directory.
type file struct {
	ino  uint64
	mode uint32 // with the type of the file

	data    []byte // what processes see
	platter []byte // what is there after a power cut, before the pending writes
	pending []write

	names  map[string]*file // of a directory
	stable map[string]*file // of a directory, on the platter
}

// A write is a change of a file's data that the platter does not have yet.
type write struct {
	at   int64
	data []byte // nil: the file was cut or grown to at
}

// A change is a change of names that the platter does not have yet. A rename changes two at
// once.
type change []entry

type entry struct {
	dir  *file
	name string
	file *file // nil: removed
}

// New returns an empty disk.
func New() *Disk {
	d := &Disk{broken: map[*file]map[int64]bool{}}
	d.root = d.newFile(syscall.S_IFDIR | 0o755)
	return d
}

func (d *Disk) newFile(mode uint32) *file {
	d.last++
	f := &file{ino: d.last, mode: mode}
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		f.names, f.stable = map[string]*file{}, map[string]*file{}
	}
	return f
}

// Lie decides whether the disk lies: a sync then returns at once and does nothing.
func (d *Disk) Lie(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.lies = on
}

// FailSyncs lets the next n syncs fail with EIO. As on Linux, what they should have written
// never reaches the platter, although processes still read it.
func (d *Disk) FailSyncs(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.syncs = n
}

// FailWrites lets each write fail with an error. 0 ends that.
func (d *Disk) FailWrites(err syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.writes = err
}

// Break makes the sector with byte at of a file unreadable. It reports whether the file has
// that byte. A process may have the sector in its page cache; mount the disk again to see the
// effect.
func (d *Disk) Break(path string, at int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.find(path)
	if f == nil || at >= int64(len(f.data)) {
		return false
	}
	if d.broken[f] == nil {
		d.broken[f] = map[int64]bool{}
	}
	d.broken[f][at/sector] = true
	return true
}

// Repair makes all sectors readable again.
func (d *Disk) Repair() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.broken)
}

// Size returns the size of a file in bytes, -1 if there is none.
func (d *Disk) Size(path string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.find(path); f != nil {
		return int64(len(f.data))
	}
	return -1
}

// Cut cuts the power. Of each file there is what was synced, and a part of the rest. The disk
// must not be mounted.
func (d *Disk) Cut(rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.journal[:rng.IntN(len(d.journal)+1)] {
		c.apply()
	}
	d.journal = nil
	share := []float64{0, 0.5, 0.9, 1}[rng.IntN(4)] // of the sectors that were written in time
	d.root.cut(func() bool { return rng.Float64() < share })
}

// cut takes a file to what is on the platter. kept says whether a sector was written in time.
func (f *file) cut(kept func() bool) {
	for _, w := range f.pending {
		w.apply(&f.platter, kept)
	}
	f.pending = nil
	f.data = append([]byte(nil), f.platter...)
	if f.stable == nil {
		return
	}
	f.names = maps.Clone(f.stable)
	for _, child := range f.names {
		child.cut(kept)
	}
}

// apply writes to a platter those sectors that kept accepts.
func (w write) apply(platter *[]byte, kept func() bool) {
	if w.data == nil {
		if kept() {
			*platter = resize(*platter, w.at)
		}
		return
	}
	for at, rest := w.at, w.data; len(rest) > 0; {
		n := min(int64(len(rest)), sector-at%sector)
		if kept() {
			*platter = resize(*platter, max(int64(len(*platter)), at+n))
			copy((*platter)[at:], rest[:n])
		}
		at, rest = at+n, rest[n:]
	}
}

func resize(b []byte, n int64) []byte {
	if n <= int64(len(b)) {
		return b[:n:n]
	}
	return append(b, make([]byte, n-int64(len(b)))...)
}

func (c change) apply() {
	for _, e := range c {
		if e.file == nil {
			delete(e.dir.stable, e.name)
		} else {
			e.dir.stable[e.name] = e.file
		}
	}
}
