package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/ownfile"
)

// backupID marks the databases of a backup in their header: "TPDB". So a backup recognises
// what one that was killed has left.
const backupID = 0x54504442

func eventsName(n int64) string    { return fmt.Sprintf("events-%d.db", n) }
func catalogueName(n int64) string { return fmt.Sprintf("catalogue-%d.db", n) }

// The forms of the names of what a killed backup leaves. A file that was being written when
// it was killed has a number at its end.
var (
	databaseForm = regexp.MustCompile(`^(events|catalogue)-\d+\.db$`)
	manifestForm = regexp.MustCompile(`^manifest\.json\.\d+$`)
	fileForm     = regexp.MustCompile(`^files/\d+-(.+?)(\.\d+)?$`)
)

// openFolder creates the folder of the backup, or checks that it is one.
func (b *backup) openFolder() error {
	if err := os.MkdirAll(b.dest, 0o700); err != nil {
		return err
	}
	names, err := b.names()
	if err != nil || slices.Contains(names, manifestName) {
		return err
	}
	for _, name := range names {
		if name != backupLockName && !b.isLeft(name) {
			return tapedeck.Errorf(tapedeck.Conflict, "the folder %s has other files, so no backup is made there", b.dest).
				WithHint("name a new or empty folder, or one that has a backup")
		}
	}
	return os.Chmod(b.dest, 0o700) //nolint:gosec // a folder
}

// names returns the names of all that is in the backup. It refuses links: behind them are
// files of others.
func (b *backup) names() (names []string, err error) {
	for _, folder := range [...]string{"", backupFiles + "/"} {
		entries, err := os.ReadDir(filepath.Join(b.dest, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			switch name := folder + e.Name(); {
			case e.Type()&fs.ModeSymlink != 0:
				return nil, tapedeck.Errorf(tapedeck.Invalid, "%s is a link, and a backup has none", filepath.Join(b.dest, name)).
					WithHint("remove the link, or name another folder")
			case name != backupFiles:
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// clean removes what this and earlier backups have made and the manifest does not name.
// Files of others stay.
func (b *backup) clean() error {
	names, err := b.names()
	if err != nil {
		return err
	}
	keep := b.m.all()
	for _, name := range names {
		is := func(f backupFile) bool { return f.Name == name }
		if slices.ContainsFunc(keep, is) || !slices.ContainsFunc(b.had, is) && !b.isLeft(name) {
			continue
		}
		if err := os.Remove(filepath.Join(b.dest, name)); err != nil {
			return err
		}
	}
	return nil
}

// isLeft reports whether a file has the name and the beginning of one that a killed backup
// leaves. Keys and settings have no beginning of their own: their folder and name decide.
func (b *backup) isLeft(name string) bool {
	ours := func([]byte) bool { return true }
	switch file := fileForm.FindStringSubmatch(name); {
	case databaseForm.MatchString(name):
		ours = isOfBackup
	case manifestForm.MatchString(name):
		ours = func(beginning []byte) bool { return bytes.HasPrefix(beginning, []byte("{\n \"format\": ")) }
	case file == nil || !slices.Contains(b.Files, file[1]):
		return false
	}
	return ownfile.Check(filepath.Join(b.dest, name), ours) == nil
}

// isOfBackup reports whether a file that begins so is a database of a backup.
func isOfBackup(beginning []byte) bool {
	const at = 68 // of the id in the header
	return isSQLite(beginning) && len(beginning) >= at+4 && binary.BigEndian.Uint32(beginning[at:]) == backupID
}
