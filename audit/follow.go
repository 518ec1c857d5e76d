package audit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck/api"
)

// A Follower reads the records that are written after it was made.
type Follower struct {
	dir   string
	query api.AuditQuery
	tails []*tail
}

// A tail is how far a follower has read a strand.
type tail struct {
	strand *strand
	file   *os.File // nil before there is one
	at     int64    // where the next line begins
}

// NewFollower returns a follower of the log of the data folder dir, which begins at the end
// of the log. Call Close at the end.
func NewFollower(dir string, q api.AuditQuery) (*Follower, error) {
	f := &Follower{dir: filepath.Join(dir, Folder), query: q}
	for _, s := range strands {
		t := &tail{strand: s}
		f.tails = append(f.tails, t)
		if err := t.open(f.dir); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if t.file != nil {
			end, err := t.file.Seek(0, io.SeekEnd)
			if err != nil {
				return nil, errors.Join(err, f.Close())
			}
			t.at = end
		}
	}
	return f, nil
}

// Close releases the files.
func (f *Follower) Close() (err error) {
	for _, t := range f.tails {
		if t.file != nil {
			err = errors.Join(err, t.file.Close())
		}
	}
	return err
}

// Next returns the records that were written since the last call, oldest first.
func (f *Follower) Next() (out []api.AuditRecord, err error) {
	for _, t := range f.tails {
		records, err := t.next(f.dir)
		if err != nil {
			return nil, err
		}
		for i := range records {
			if passes(&f.query, &records[i]) {
				out = append(out, records[i])
			}
		}
	}
	slices.SortStableFunc(out, func(a, b api.AuditRecord) int { return a.Time.Compare(b.Time) })
	return out, nil
}

// Run calls use with the records of each call of [Follower.Next], after each tick, until
// ctx is done.
func (f *Follower) Run(ctx context.Context, ticks <-chan time.Time, use func([]api.AuditRecord) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks:
		}
		records, err := f.Next()
		if err == nil && len(records) > 0 {
			err = use(records)
		}
		if err != nil {
			return err
		}
	}
}

func (t *tail) open(dir string) error {
	f, err := os.Open(t.strand.file(dir, 0))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	t.file, t.at = f, 0
	return err
}

// next reads what was written since the last call. If the file has become an older one, it
// reads the files that came after it, too.
func (t *tail) next(dir string) ([]api.AuditRecord, error) {
	if t.file == nil {
		if err := t.open(dir); err != nil || t.file == nil {
			return nil, err
		}
	}
	out, err := t.rest()
	if err != nil {
		return nil, err
	}
	held, err := t.file.Stat()
	if err != nil {
		return nil, err
	}
	now, err := os.Stat(t.strand.file(dir, 0))
	if err != nil || os.SameFile(held, now) { // it may be between two names
		return out, nil //nolint:nilerr // the next call finds it
	}
	more, err := t.rest() // what was written between the two
	if err != nil {
		return nil, err
	}
	if err := errors.Join(t.file.Close(), t.open(dir)); err != nil {
		return nil, err
	}
	newest, err := t.rest()
	return slices.Concat(out, more, newest), err
}

// rest reads the whole lines after t.at.
func (t *tail) rest() (out []api.AuditRecord, err error) {
	if _, err := t.file.Seek(t.at, io.SeekStart); err != nil {
		return nil, err
	}
	counted := &counter{r: t.file}
	lines := bufio.NewReaderSize(counted, maxLine)
	for {
		r, err := next(lines)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case errors.Is(err, errUnreadable):
			if counted.ended && lines.Buffered() == 0 { // it may be being written
				return out, nil
			}
		case err != nil:
			return nil, err
		default:
			out = append(out, r)
		}
		t.at += counted.taken(lines)
	}
}

// A counter knows how much of a file was read.
type counter struct {
	r     io.Reader
	n     int64 // bytes that were read
	used  int64 // of them, those that taken has returned
	ended bool
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	c.ended = errors.Is(err, io.EOF)
	return n, err
}

// taken returns how many bytes were taken from a buffer since the last call.
func (c *counter) taken(b *bufio.Reader) int64 {
	at := c.n - int64(b.Buffered())
	n := at - c.used
	c.used = at
	return n
}
