// Package sessionkeys keeps the key of each session, in a file of slots.
//
// Each key is encrypted with the master key, which the file does not have. A key is erased
// where it is: its slot is overwritten, and keeps the id, so that it is known that there was
// a key and that it was erased. The file has no other copy of it, no journal and no free pages.
// docs/design/0037-payload-encryption.md says why.
package sessionkeys

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/tapedeck/tapedeck/internal/ownfile"
)

// FileName is the name of the file in a data folder.
const FileName = "session-keys"

// Errors of a file and of its keys.
var (
	ErrWrongMaster = errors.New("the keys were not encrypted with this master key")
	ErrErased      = errors.New("the key was erased")
	ErrUnknown     = errors.New("the file has never had the key")
	ErrNotOurs     = errors.New("it is not a file of keys, or it is damaged")
)

// An ID names a key: the number of its slot, and random bytes that tell it from a key that
// another copy of the file has in the same slot.
type ID [16]byte

func (id ID) slot() int64 { return int64(binary.BigEndian.Uint64(id[:8])) }

// ParseID returns the id in a column. The error is [ErrUnknown].
func ParseID(b []byte) (id ID, err error) {
	if len(b) != len(id) || b[0]&0x80 != 0 {
		return id, ErrUnknown
	}
	copy(id[:], b)
	return id, nil
}

// A slot has the id, one byte that says what follows, and the key as it is encrypted. The
// slot 0 is the header: its id is magic, and its key opens with the master key of the file.
const (
	slotSize   = 80
	sealedSize = 12 + KeySize + 16
	sealedAt   = slotSize - sealedSize
	stateAt    = 16
)

// States of a slot.
const (
	stateKey    = 1
	stateErased = 2
)

var magic = ID([]byte("tapedeck keys 1\n"))

// A File is an open file of keys. Its methods can be called by several goroutines; those
// that create keys must be called by one at a time.
type File struct {
	path   string
	file   *os.File
	master cipher.AEAD

	mu      sync.Mutex
	slots   int64  // in the file, with the header
	pending []byte // the slots that Sync will write
}

// Create creates a file without keys, which only its owner can read.
func Create(path string, master []byte) (*File, error) {
	aead, err := newAEAD(master)
	if err != nil {
		return nil, err
	}
	if err := writeNew(path, func(w io.Writer) error { return writeHeader(w, aead) }); err != nil {
		return nil, err
	}
	return Open(path, master)
}

// Open opens a file. The error is [ErrWrongMaster], [ErrNotOurs], or one of the system.
func Open(path string, master []byte) (_ *File, err error) {
	aead, err := newAEAD(master)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	header := make([]byte, slotSize)
	if _, err := f.ReadAt(header, 0); err != nil || ID(header[:16]) != magic {
		return nil, errors.Join(ErrNotOurs, err)
	}
	if _, err := openSlot(aead, header); err != nil {
		return nil, ErrWrongMaster
	}
	if err := discardUnfinished(path); err != nil {
		return nil, err
	}
	// A part of a slot at the end is what a crash has left of a write that nobody waits for.
	return &File{path: path, file: f, master: aead, slots: info.Size() / slotSize}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// New returns a new key. It is in the file after [File.Sync].
func (f *File) New() (*Key, error) {
	secret := make([]byte, KeySize)
	_, _ = rand.Read(secret) // it never fails
	f.mu.Lock()
	defer f.mu.Unlock()
	var id ID
	binary.BigEndian.PutUint64(id[:8], uint64(f.slots+int64(len(f.pending)/slotSize)))
	_, _ = rand.Read(id[8:])
	f.pending = append(f.pending, sealSlot(f.master, id, secret)...)
	return newKey(id, secret)
}

// Sync writes the new keys to the disk.
func (f *File) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) == 0 {
		return nil
	}
	if _, err := f.file.WriteAt(f.pending, f.slots*slotSize); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.slots += int64(len(f.pending) / slotSize)
	f.pending = f.pending[:0]
	return nil
}

// Discard forgets the new keys that were not written.
func (f *File) Discard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.pending)
	f.pending = f.pending[:0]
}

// Key returns the key with an id. The error is [ErrErased], [ErrUnknown], or one of the
// system.
func (f *File) Key(id ID) (*Key, error) {
	slot, err := f.read(id)
	if err != nil {
		return nil, err
	}
	if slot[stateAt] == stateErased {
		return nil, ErrErased
	}
	secret, err := openSlot(f.master, slot)
	if err != nil {
		return nil, fmt.Errorf("the key in slot %d of %s is damaged", id.slot(), f.path)
	}
	defer clear(secret)
	return newKey(id, secret)
}

// read returns the slot of a key.
func (f *File) read(id ID) ([]byte, error) {
	slot := make([]byte, slotSize)
	if n := id.slot(); n < 1 {
		return nil, ErrUnknown
	} else if _, err := f.file.ReadAt(slot, n*slotSize); errors.Is(err, io.EOF) {
		return nil, ErrUnknown
	} else if err != nil {
		return nil, err
	}
	if !bytes.Equal(slot[:16], id[:]) {
		return nil, ErrUnknown
	}
	return slot, nil
}

// Erase overwrites keys. When it returns, they are not in the file. A key that the file does
// not have is no error.
func (f *File) Erase(ids ...ID) error {
	for _, id := range ids {
		slot, err := f.read(id)
		if errors.Is(err, ErrUnknown) {
			continue
		}
		if err != nil {
			return err
		}
		clear(slot[stateAt:])
		slot[stateAt] = stateErased
		if _, err := f.file.WriteAt(slot, id.slot()*slotSize); err != nil {
			return err
		}
	}
	return f.file.Sync()
}

func sealSlot(master cipher.AEAD, id ID, secret []byte) []byte {
	slot := make([]byte, sealedAt, slotSize)
	copy(slot, id[:])
	slot[stateAt] = stateKey
	return master.Seal(slot, nil, secret, id[:])
}

func openSlot(master cipher.AEAD, slot []byte) ([]byte, error) {
	return master.Open(nil, nil, slot[sealedAt:], slot[:16])
}

func writeHeader(w io.Writer, master cipher.AEAD) error {
	_, err := w.Write(sealSlot(master, magic, make([]byte, KeySize)))
	return err
}

// unfinished is behind the name of a file that [writeNew] has not completed.
const unfinished = ".new"

// discardUnfinished overwrites and removes what a rotation or a copy that was killed has left:
// it has keys that would never be erased.
func discardUnfinished(path string) error {
	f, err := os.OpenFile(path+unfinished, os.O_WRONLY|ownfile.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = (&File{file: f, slots: (info.Size() + slotSize - 1) / slotSize}).overwrite()
	}
	return errors.Join(err, f.Close(), os.Remove(path+unfinished))
}

// writeNew creates or replaces a file as a whole: after a crash there is the old one, or the
// new one.
func writeNew(path string, write func(io.Writer) error) error {
	tmp := path + unfinished
	if err := discardUnfinished(path); err != nil {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil { // not every system can sync a folder
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
