package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/keyfile"
	"github.com/tapedeck/tapedeck/internal/ownfile"
)

// A backup is a folder:
//
//	manifest.json   what there is, with checksums; replaced as a whole, at the end
//	events-N.db     the events of a range of positions
//	catalogue-N.db  everything else at one moment, and the events erased since the one before
//	files/          keys and settings, as N-NAME
//
// No file but the manifest ever changes. What a backup that was killed has left is in no
// manifest; the next one recognises and removes it.
const (
	manifestName   = "manifest.json"
	backupFormat   = 1
	backupLockName = "lock"
	backupFiles    = "files"
)

// A manifest says what a backup has.
type manifest struct {
	Format   int    `json:"format"`
	Timeline int64  `json:"timeline"` // of the data folder, see sqlTimeline
	Next     int64  `json:"next"`     // the number of the next file
	Parts    []part `json:"parts"`
	// Points are the moments to which the backup can restore everything, oldest first.
	Points []Point      `json:"points"`
	Files  []backupFile `json:"files"`
}

// A backupFile is a file of a backup.
type backupFile struct {
	Name   string `json:"name"` // relative to the backup, with slashes
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// A part has the events after the position From, up to To.
type part struct {
	backupFile
	Chain  int64 `json:"chain"` // see Point.Chain
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Events int64 `json:"events"`
}

// A Point is a moment to which a backup can restore.
type Point struct {
	Number    int64      `json:"number"`
	Time      time.Time  `json:"time"` // all that was acknowledged before it is there
	Schema    int64      `json:"schema"`
	Chain     int64      `json:"chain"` // the parts of the same chain have the events; a new schema begins a new chain
	Pos       int64      `json:"pos"`   // position of the newest event
	Gen       int64      `json:"gen"`   // the newest gen that was given out
	Erased    int64      `json:"erased"`
	Sessions  int64      `json:"sessions"`
	Streams   int64      `json:"streams"`
	Events    int64      `json:"events"`
	Catalogue backupFile `json:"catalogue"`
}

// last returns the newest point, nil if there is none.
func (m *manifest) last() *Point {
	if len(m.Points) == 0 {
		return nil
	}
	return &m.Points[len(m.Points)-1]
}

// chain returns the parts with events of a point, in order.
func (m *manifest) chain(p *Point) []part {
	var parts []part
	for _, x := range m.Parts {
		if x.Chain == p.Chain && x.From < p.Pos {
			parts = append(parts, x)
		}
	}
	return parts
}

// all returns all files of the backup.
func (m *manifest) all() []backupFile {
	files := slices.Clone(m.Files)
	for _, p := range m.Parts {
		files = append(files, p.backupFile)
	}
	return append(files, m.catalogues()...)
}

// catalogues returns the catalogues of all points.
func (m *manifest) catalogues() (files []backupFile) {
	for i := range m.Points {
		files = append(files, m.Points[i].Catalogue)
	}
	return files
}

// backupName is the form of the names in a manifest. A manifest may come from elsewhere:
// no name leads out of the folder.
var backupName = regexp.MustCompile(`^(files/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)

// readManifest reads the manifest of a backup. The error is [fs.ErrNotExist] if there is
// none.
func readManifest(dir string) (*manifest, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, err
	}
	m := new(manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the file %s of the backup %s is damaged", manifestName, dir).
			WithHint("make a new backup in another folder").Because(err)
	}
	if m.Format > backupFormat {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the backup %s was made by a newer Tapedeck (its format is number %d, this program knows %d)", dir, m.Format, backupFormat).
			WithHint("use that version or a later one")
	}
	for _, f := range m.all() {
		if !backupName.MatchString(f.Name) || m.Format < 1 {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the file %s in %s is not that of a backup", manifestName, dir)
		}
	}
	return m, nil
}

// write replaces the manifest of a backup. It returns when that is on the disk.
func (m *manifest) write(dir string) error {
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return keyfile.Write(filepath.Join(dir, manifestName), append(b, '\n'))
}

// syncFile writes a file to the disk.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// describe returns a file of a backup with its size and checksum, as they are on the disk.
func describe(ctx context.Context, dir, name string) (backupFile, error) {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return backupFile{}, err
	}
	defer func() { _ = f.Close() }()
	h, buffer, size := sha256.New(), make([]byte, 1<<20), int64(0)
	for {
		n, err := f.Read(buffer)
		h.Write(buffer[:n])
		size += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return backupFile{Name: name, Bytes: size, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
		case err != nil:
			return backupFile{}, err
		case ctx.Err() != nil:
			return backupFile{}, ctx.Err()
		}
	}
}

// lockBackup keeps other backups and restores away from a backup.
func lockBackup(dir string) (release func(), err error) {
	path := filepath.Join(dir, backupLockName)
	if err := ownfile.Check(path, isLock); err != nil {
		return nil, err
	}
	f := ownfile.Lock(path)
	switch ok, err := f.TryLock(); {
	case err != nil:
		return nil, backupError(dir, err)
	case !ok:
		return nil, tapedeck.Errorf(tapedeck.Conflict, "another process uses the backup %s", dir).WithHint("wait until it ends")
	}
	return func() { _ = f.Close() }, nil
}

// backupError returns the error for users when a backup cannot be read or written.
func backupError(dir string, err error) error {
	var known *tapedeck.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isFull(err):
		return tapedeck.Errorf(tapedeck.Unavailable, "there is no space left for the backup %s; what it had before is as it was", dir).
			WithHint("make room and run the same command again").Because(err)
	case errors.Is(err, fs.ErrPermission):
		return tapedeck.Errorf(tapedeck.Invalid, "the backup %s cannot be used: permission denied", dir).Because(err)
	case errors.Is(err, fs.ErrNotExist):
		return tapedeck.Errorf(tapedeck.Invalid, "a file of the backup %s is missing", dir).
			WithHint("use another backup; to make a new one, name an empty folder").Because(err)
	case isInTheWay(err):
		return tapedeck.Errorf(tapedeck.Invalid, "the backup %s cannot be used: %s", dir, inTheWay(dir)).
			WithHint("a backup is a folder").Because(err)
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the backup %s cannot be used", dir).WithHint("look at its disk").Because(err)
}
