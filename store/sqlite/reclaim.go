package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"github.com/tapedeck/tapedeck/internal/group"
)

// SQLite keeps the pages of deleted rows for later rows, and the file does not become
// smaller. Incremental vacuum would move pages of live rows, and leave copies of them
// behind; it also needs a format that a database has from its beginning. So the store
// leaves the free pages where they are and gives their blocks back to the file system: it
// makes holes. A page in a hole reads as zeros, as a free page does anyway (secure_delete).

const (
	reclaimFrom  = 4 << 20 // bytes of free pages that still take space, from which on it is worth the work
	reclaimPages = 4096    // most pages in one step, which stops the writer
)

const sqlFreePages = `PRAGMA freelist_count`

// reclaim gives the space of free pages back to the file system, if there is enough of it.
func (s *Store) reclaim(ctx context.Context) error {
	if s.noHoles {
		return nil
	}
	if worth, err := s.reclaimable(ctx); err != nil || !worth {
		return err
	}
	t := &reclaiming{}
	for !t.done {
		switch err := s.writer.submit(ctx, t, group.BigSize); {
		case errors.Is(err, errNoHoles):
			s.noHoles = true
			return nil
		case errors.Is(err, errRead): // the next tick tries again
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// reclaimable reports whether free pages take much space on the disk.
func (s *Store) reclaimable(ctx context.Context) (bool, error) {
	var free, size int64
	err := s.readers.use(ctx, func(c *conn) (err error) {
		if free, err = c.number(sqlFreePages); err == nil {
			size, err = c.number(sqlPageSize)
		}
		return err
	})
	if err != nil || free*size < reclaimFrom {
		return false, err
	}
	info, err := os.Stat(s.file)
	if err != nil {
		return false, err
	}
	holes := info.Size() - allocated(info)
	return free*size-holes >= reclaimFrom, nil
}

// A reclaiming is the task of making holes of some free pages.
type reclaiming struct {
	after int64 // the last page that is done
	done  bool
}

// do runs on the goroutine that writes, so no page is used again meanwhile. It first moves
// the write-ahead log into the database while nobody reads: afterwards no reader knows a
// state in which one of the pages was in use.
func (t *reclaiming) do(w *writer) error {
	if err := w.store.checkPlace(); err != nil {
		return err
	}
	if err := w.truncateLog(); err != nil {
		return err
	}
	f, err := w.store.raw()
	if err != nil {
		return err
	}
	pages, size, err := freePages(f)
	if err != nil {
		return err
	}
	i, found := slices.BinarySearch(pages, t.after)
	if found {
		i++
	}
	pages = pages[i:]
	t.done = len(pages) <= reclaimPages
	pages = pages[:min(len(pages), reclaimPages)]
	for len(pages) > 0 {
		n := 1
		for n < len(pages) && pages[n] == pages[0]+int64(n) {
			n++
		}
		if err := punch(f, (pages[0]-1)*size, int64(n)*size); err != nil {
			return err
		}
		t.after = pages[n-1]
		pages = pages[n:]
	}
	return nil
}

// raw returns the database file. It stays open until the store is closed: in one process,
// closing a file ends the locks of SQLite on it.
func (s *Store) raw() (*os.File, error) {
	if s.rawFile != nil {
		return s.rawFile, nil
	}
	f, err := os.OpenFile(s.file, os.O_RDWR, 0)
	if err == nil {
		s.rawFile = f
	}
	return f, err
}

var errFreePages = errors.New("the list of free pages is not as SQLite writes it")

// freePages returns the free pages of a database file whose write-ahead log is empty, in
// ascending order. The pages that have the list itself are not among them.
func freePages(f *os.File) (pages []int64, size int64, err error) {
	head := make([]byte, 100)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, 0, err
	}
	if size = int64(binary.BigEndian.Uint16(head[16:])); size == 1 {
		size = 1 << 16
	}
	total := int64(binary.BigEndian.Uint32(head[28:]))
	if size < 512 || size&(size-1) != 0 {
		return nil, 0, errFreePages
	}
	list := make([]byte, size)
	seen := int64(0)
	for next := int64(binary.BigEndian.Uint32(head[32:])); next != 0; next = int64(binary.BigEndian.Uint32(list)) {
		if seen++; next > total || seen > total {
			return nil, 0, errFreePages
		}
		if _, err := f.ReadAt(list, (next-1)*size); err != nil {
			return nil, 0, err
		}
		n := int64(binary.BigEndian.Uint32(list[4:]))
		if n > size/4-2 {
			return nil, 0, errFreePages
		}
		for i := range n {
			page := int64(binary.BigEndian.Uint32(list[8+4*i:]))
			if page < 2 || page > total {
				return nil, 0, errFreePages
			}
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	return pages, size, nil
}
