package sqlite

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/ownfile"
)

// checkNames returns an error if files of others have the names of those of a database or of
// its search index. An index beside a database may have any content: a damaged one is
// recreated.
func checkNames(file string) error {
	index, isNew := filepath.Join(filepath.Dir(file), indexName), missing(file)
	return cmp.Or(
		checkBeside(file, isNew),
		ownfile.Check(index, func(beginning []byte) bool { return !isNew || isIndex(beginning) }),
		checkBeside(index, isNew && missing(index)),
	)
}

// checkBeside returns an error if there is a link or a folder in the place of a file that
// SQLite has beside a database, and if there is no database, when there is anything: SQLite
// would remove it.
func checkBeside(file string, alone bool) error {
	for _, end := range databaseEnds {
		if end == "" {
			continue
		}
		err := ownfile.Check(file+end, func([]byte) bool { return !alone })
		if err != nil && alone {
			return tapedeck.Errorf(tapedeck.Invalid, "%s is there, and a file %s is not", file+end, filepath.Base(file)).
				WithHint("move it away, or choose another folder; if a database was there, put it back").Because(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// within reports whether a folder, which need not exist, is another one or is in it.
func within(dir, other string) bool {
	at, err := filepath.Abs(dir)
	of, statErr := os.Stat(other)
	if err != nil || statErr != nil {
		return false // where they are used, the error shows
	}
	for isReal := false; ; at = filepath.Dir(at) {
		if !isReal { // the end of the path may not be there yet
			if real, err := filepath.EvalSymlinks(at); err == nil {
				at, isReal = real, true
			}
		}
		if info, err := os.Stat(at); isReal && err == nil && os.SameFile(info, of) {
			return true
		}
		if filepath.Dir(at) == at {
			return false
		}
	}
}

// apart returns an error if the folder to which is written is in the one that is read.
func apart(to, from string) error {
	if !within(to, from) {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the folder %s is in %s, and that is only read", to, from).
		WithHint("name a folder elsewhere")
}
