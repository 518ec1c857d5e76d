package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck/api"
)

// Limits of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
	maxLine      = 64 << 10 // bytes of a line; a longer one was not written by this package
)

// Read returns the newest records of the log of the data folder dir that pass a query. The
// log may be in use. A folder without a log has no records.
func Read(dir string, q api.AuditQuery) (api.AuditPage, error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, maxLimit)
	out := api.AuditPage{Records: []api.AuditRecord{}}
	for _, s := range strands {
		if err := s.read(filepath.Join(dir, Folder), &q, &out); err != nil {
			return out, err
		}
	}
	slices.SortStableFunc(out.Records, func(a, b api.AuditRecord) int { return b.Time.Compare(a.Time) })
	if len(out.Records) > q.Limit {
		out.Records = out.Records[:q.Limit]
		next := out.Records[q.Limit-1].Time
		out.Next = &next
	}
	return out, nil
}

// read adds the newest records of a strand to a page: one more than the page may have, so
// that it is known whether there is another page.
func (s *strand) read(dir string, q *api.AuditQuery, out *api.AuditPage) error {
	files, err := s.open(dir)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	left := q.Limit + 1
	for _, f := range files {
		found, err := readFile(f, q, left, &out.Unreadable)
		if err != nil {
			return err
		}
		out.Records = append(out.Records, found...)
		if left -= len(found); left <= 0 {
			return nil
		}
	}
	return nil
}

// open opens the files of a strand, the newest first. It locks the folder, so that none is
// renamed meanwhile; a folder that can only be read is not locked.
func (s *strand) open(dir string) (files []*os.File, err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if unlock, err := lockFolder(dir); err == nil {
		defer unlock()
	}
	for n := range s.files {
		f, err := os.Open(s.file(dir, n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// readFile returns the newest records of a file that pass a query, at most limit.
func readFile(f io.Reader, q *api.AuditQuery, limit int, unreadable *int) ([]api.AuditRecord, error) {
	var found []api.AuditRecord
	lines := bufio.NewReaderSize(f, maxLine)
	for {
		r, err := next(lines)
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case errors.Is(err, errUnreadable):
			*unreadable++
			continue
		case err != nil:
			return nil, err
		}
		if passes(q, &r) {
			if found = append(found, r); len(found) >= 2*limit { // only the newest count
				found = append(found[:0], found[len(found)-limit:]...)
			}
		}
	}
}

// errUnreadable means that a line is not one that this package has written as a whole.
var errUnreadable = errors.New("a line cannot be read")

// next reads a record.
func next(lines *bufio.Reader) (r api.AuditRecord, err error) {
	line, err := lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		return r, errUnreadable
	case errors.Is(err, io.EOF) && len(line) > 0: // a crash has cut it off
		return r, errUnreadable
	case err != nil:
		return r, err
	}
	if line = bytes.TrimSpace(line); json.Unmarshal(line, &r) != nil || r.Time.IsZero() || r.Action == "" {
		return r, errUnreadable
	}
	return r, nil
}

// passes reports whether a record is one that a query asks for.
func passes(q *api.AuditQuery, r *api.AuditRecord) bool {
	is := func(want, has string) bool { return want == "" || want == has }
	return (is(q.Action, r.Action) || strings.HasPrefix(r.Action, q.Action+".")) &&
		is(q.Actor, r.Actor) && is(q.Session, r.Session) && is(q.Outcome, r.Outcome) &&
		(q.From.IsZero() || !r.Time.Before(q.From)) && (q.To.IsZero() || r.Time.Before(q.To))
}
