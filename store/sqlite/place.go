package sqlite

import (
	"errors"
	"path/filepath"

	"github.com/tapedeck/tapedeck"
)

// A place knows the files of a data folder, so that the store notices when the
// folder is deleted, moved or replaced. An open file can still be written then, but
// no later process would find it.
type place struct {
	dir   string
	files []placedFile // the write-ahead log first
}

type placedFile struct {
	path string
	identity
}

// placeOf returns the place of a database as it is now.
func placeOf(file string) (*place, error) {
	p := &place{dir: filepath.Dir(file)}
	for _, path := range []string{file + "-wal", file, filepath.Join(p.dir, lockName)} {
		id, err := identify(path)
		if err != nil {
			return nil, folderError(p.dir, err)
		}
		p.files = append(p.files, placedFile{path, id})
	}
	return p, nil
}

// check returns an error if the files are not at their paths any more.
func (p *place) check() error { return p.checkFiles(len(p.files)) }

// checkLog checks only the write-ahead log. It runs before every commit is
// acknowledged, so it must be quick. It notices a deleted, moved or replaced folder
// as well as check does.
func (p *place) checkLog() error { return p.checkFiles(1) }

func (p *place) checkFiles(n int) error {
	for _, f := range p.files[:n] {
		switch id, err := identify(f.path); {
		case err != nil:
			return p.lost().Because(err)
		case !f.is(id):
			return p.lost().Because(errors.New(f.path + " is another file now"))
		}
	}
	return nil
}

func (p *place) lost() *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Unavailable, "the data folder %s was deleted, moved or replaced while it was in use", p.dir).
		WithHint("nothing is stored any more; put the folder back in its place and start the server again")
}

// checkPlace checks the store's folder. When it fails for the first time, the store
// refuses all later writes, and calls OnLost.
func (s *Store) checkPlace() error { return s.checkPlaceBy((*place).check) }

func (s *Store) checkPlaceBy(check func(*place) error) error {
	if lost := s.lost.Load(); lost != nil {
		return *lost
	}
	if s.place == nil { // the store is being opened
		return nil
	}
	err := check(s.place)
	if err != nil && s.lost.CompareAndSwap(nil, &err) {
		s.options.Logger.Error("the data folder is lost; nothing is stored any more", "error", err)
		if s.options.OnLost != nil {
			go s.options.OnLost(err)
		}
	}
	return err
}

// refusal returns the error that a caller gets when a commit failed.
func (s *Store) refusal(err error) error {
	lost := s.lost.Load()
	var known *tapedeck.Error
	switch {
	case errors.As(err, &known) && known.Kind == tapedeck.Internal:
		return known // what it would change is damaged
	case lost == nil:
		return unwritten(err)
	case errors.Is(err, errUncertain): // it may be in the folder, wherever that is now
		return tapedeck.Errorf(tapedeck.Unavailable, "%w; it is not certain whether this was stored", *lost).
			WithHint("put the folder back in its place and start the server again")
	}
	return *lost
}
