package faultdisk

import (
	"strings"
	"syscall"
)

// find returns the file at a path below the root, or nil.
func (d *Disk) find(path string) *file {
	f := d.root
	for name := range strings.SplitSeq(path, "/") {
		if f = f.names[name]; f == nil {
			return nil
		}
	}
	return f
}

// set changes names at once, for processes; the platter gets the change later.
func (d *Disk) set(entries ...entry) {
	for _, e := range entries {
		if e.file == nil {
			delete(e.dir.names, e.name)
		} else {
			e.dir.names[e.name] = e.file
		}
	}
	d.journal = append(d.journal, entries)
}

// sync makes the data of a file and all changes of names durable.
func (d *Disk) sync(f *file) syscall.Errno {
	switch {
	case d.faults.syncs > 0:
		d.faults.syncs--
		f.pending = nil // the kernel marks the pages as clean; nobody writes them again
		return syscall.EIO
	case d.faults.lies:
		return 0
	}
	for _, w := range f.pending {
		w.apply(&f.platter, always)
	}
	f.pending = nil
	for _, c := range d.journal {
		c.apply()
	}
	d.journal = nil
	return 0
}

func always() bool { return true }

// write writes data as processes see it.
func (d *Disk) write(f *file, data []byte, at int64) syscall.Errno {
	if d.faults.writes != 0 {
		return d.faults.writes
	}
	w := write{at: at, data: append([]byte{}, data...)}
	w.apply(&f.data, always)
	f.pending = append(f.pending, w)
	return 0
}

// truncate cuts a file, or grows it with zeros.
func (d *Disk) truncate(f *file, size int64) {
	f.data = resize(f.data, size)
	f.pending = append(f.pending, write{at: size})
}

// read returns a part of a file's data.
func (d *Disk) read(f *file, into []byte, at int64) (int, syscall.Errno) {
	if at >= int64(len(f.data)) {
		return 0, 0
	}
	n := copy(into, f.data[at:])
	for s := range d.broken[f] {
		if s >= at/sector && s <= (at+int64(n)-1)/sector {
			return 0, syscall.EIO
		}
	}
	return n, 0
}

// move renames a file, and replaces what had the new name.
func (d *Disk) move(from *file, name string, to *file, newName string) syscall.Errno {
	f := from.names[name]
	if f == nil {
		return syscall.ENOENT
	}
	d.set(entry{dir: from, name: name}, entry{dir: to, name: newName, file: f})
	return 0
}

// remove removes a name.
func (d *Disk) remove(dir *file, name string) syscall.Errno {
	f := dir.names[name]
	switch {
	case f == nil:
		return syscall.ENOENT
	case len(f.names) > 0:
		return syscall.ENOTEMPTY
	}
	d.set(entry{dir: dir, name: name})
	return 0
}
