package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tapedeck/tapedeck"
)

// A Condition says how a database is, without opening it for writing.
type Condition struct {
	Exists bool
	Bytes  int64 // size of the database, without its write-ahead log and the search index
	Schema int64 // number of its schema; lower than Known if the next start migrates it
	Known  int64 // number of the newest schema that this program knows
	Whole  bool  // it was checked for damage; a large one is not, see [Store.Verify]
}

// Inspect looks at the database in a data folder. It changes nothing, and a server may use
// the folder meanwhile. The error says why the database cannot be used: it is damaged, of
// another program or of a newer Tapedeck. A folder without a database is no error.
func Inspect(dir string) (Condition, error) {
	out := Condition{Known: knownVersion()}
	if kind := networkKind(dir); kind != "" {
		return out, tapedeck.Errorf(tapedeck.Invalid, "the data folder %s is on a network file system (%s)", dir, kind).
			WithHint("choose a folder on a local disk: over a network neither locks nor fsync can be relied on")
	}
	file := filepath.Join(dir, databaseName)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, folderError(dir, err)
	}
	out.Exists, out.Bytes = true, info.Size()
	source := dataSource(file, "ro", readerPragmas)
	if _, err := os.Stat(file + "-wal"); errors.Is(err, fs.ErrNotExist) {
		source += "&immutable=1" // otherwise SQLite would create the log and its index
	}
	c, err := dial(source)
	if err != nil {
		return out, unsound(file, err)
	}
	defer func() { _ = c.close() }()
	if out.Schema, err = recognise(c, file); err != nil {
		return out, err
	}
	out.Whole = info.Size() < Options{}.withDefaults().CheckBelow
	if out.Whole {
		return out, quickCheck(c, file)
	}
	return out, nil
}
