package sqlite

import (
	"cmp"
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
// SQLite has beside a database, and if the database is gone, when there is anything: SQLite
// would remove it.
func checkBeside(file string, gone bool) error {
	for _, end := range databaseEnds {
		if end == "" {
			continue
		}
		err := ownfile.Check(file+end, func([]byte) bool { return !gone })
		if err != nil && gone {
			return tapedeck.Errorf(tapedeck.Invalid, "%s is there, and a file %s is not", file+end, filepath.Base(file)).
				WithHint("move it away, or choose another folder; if a database was there, put it back").Because(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
