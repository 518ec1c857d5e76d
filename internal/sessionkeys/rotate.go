package sessionkeys

import (
	"bufio"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"os"
)

// Rotate encrypts all keys of a file with another master key, and returns how many. It
// replaces the file as a whole, so after a crash the file has one master key or the other.
// Call it again then. If the file has the new master key already, it returns 0. No process
// may have the file open.
func Rotate(path string, master, next []byte) (keys int, err error) {
	to, err := newAEAD(next)
	if err != nil {
		return 0, err
	}
	from, err := Open(path, master)
	if errors.Is(err, ErrWrongMaster) {
		if done, err := Open(path, next); err == nil {
			return 0, done.Close()
		}
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	err = writeNew(path, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := writeHeader(b, to); err != nil {
			return err
		}
		keys, err = from.copyTo(b, to)
		return errors.Join(err, b.Flush())
	})
	if err != nil {
		return 0, err
	}
	return keys, from.overwrite()
}

// copyTo writes all slots, encrypted with another master key.
func (f *File) copyTo(w io.Writer, to cipher.AEAD) (keys int, err error) {
	r := bufio.NewReader(io.NewSectionReader(f.file, slotSize, (f.slots-1)*slotSize))
	slot := make([]byte, slotSize)
	for n := int64(1); n < f.slots; n++ {
		if _, err := io.ReadFull(r, slot); err != nil {
			return 0, err
		}
		out := slot
		if slot[stateAt] == stateKey {
			secret, err := openSlot(f.master, slot)
			if err != nil {
				return 0, fmt.Errorf("the key in slot %d is damaged", n)
			}
			out = sealSlot(to, ID(slot[:16]), secret)
			keys++
		}
		if _, err := w.Write(out); err != nil {
			return 0, err
		}
	}
	return keys, nil
}

// overwrite overwrites a file that has no name any more.
func (f *File) overwrite() error {
	zeros := make([]byte, 1<<16)
	for at, size := int64(0), f.slots*slotSize; at < size; at += int64(len(zeros)) {
		if _, err := f.file.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return f.file.Sync()
}

// Copy copies a file of keys, which may be in use, over an earlier copy: keys that were
// erased since are not in the copy any more. The master key is not needed.
func Copy(path, to string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	header := make([]byte, slotSize)
	if _, err := io.ReadFull(in, header); err != nil || ID(header[:16]) != magic {
		return ErrNotOurs
	}
	before, err := os.OpenFile(to, os.O_RDWR, 0)
	if err == nil {
		defer before.Close()
	}
	err = writeNew(to, func(w io.Writer) error {
		if _, err := w.Write(header); err != nil {
			return err
		}
		_, err := io.Copy(w, in)
		return err
	})
	if err != nil || before == nil {
		return err
	}
	info, err := before.Stat()
	if err != nil {
		return err
	}
	return (&File{file: before, slots: (info.Size() + slotSize - 1) / slotSize}).overwrite()
}
