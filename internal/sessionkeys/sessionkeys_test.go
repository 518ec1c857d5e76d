package sessionkeys_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/sessionkeys"
)

var (
	master = bytes.Repeat([]byte{1}, sessionkeys.KeySize)
	other  = bytes.Repeat([]byte{2}, sessionkeys.KeySize)
)

// create creates a file with n keys.
func create(t *testing.T, n int) (path string, f *sessionkeys.File, keys []*sessionkeys.Key) {
	t.Helper()
	path = filepath.Join(t.TempDir(), sessionkeys.FileName)
	f, err := sessionkeys.Create(path, master)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for range n {
		k, err := f.New()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return path, f, keys
}

// TestKeys: a key that was written is found after the file is opened again, opens what it
// has sealed, and nothing else.
func TestKeys(t *testing.T) {
	path, _, keys := create(t, 3)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatal("others can read the file", info.Mode(), err)
	}
	f, err := sessionkeys.Open(path, master)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, k := range keys {
		again, err := f.Key(k.ID())
		if err != nil {
			t.Fatal(err)
		}
		sealed := k.SealEvent(7, []byte("hello"))
		if bytes.Contains(sealed, []byte("hello")) || bytes.Equal(sealed, k.SealEvent(7, []byte("hello"))) {
			t.Fatal("it is not encrypted, or twice in the same way")
		}
		if got, err := again.OpenEvent(7, sealed); err != nil || string(got) != "hello" {
			t.Fatal(string(got), err)
		}
		for what, try := range map[string]func() ([]byte, error){
			"another offset":  func() ([]byte, error) { return again.OpenEvent(8, sealed) },
			"another session": func() ([]byte, error) { return keys[(i+1)%3].OpenEvent(7, sealed) },
			"an entry":        func() ([]byte, error) { return again.Open("entry", sealed) },
			"a cut text":      func() ([]byte, error) { return again.OpenEvent(7, sealed[:len(sealed)-1]) },
			"nothing":         func() ([]byte, error) { return again.OpenEvent(7, nil) },
			"another entry":   func() ([]byte, error) { return again.Open("totals", k.Seal("entry", []byte("x"))) },
		} {
			if got, err := try(); !errors.Is(err, sessionkeys.ErrNotSealed) {
				t.Errorf("%s: %q, %v", what, got, err)
			}
		}
	}
}

// TestErase: nothing of an erased key is left in the file, and it is known that there was
// one. Other keys stay.
func TestErase(t *testing.T) {
	path, f, keys := create(t, 3)
	before, _ := os.ReadFile(path)
	if err := f.Erase(keys[1].ID()); err != nil {
		t.Fatal(err)
	}
	if err := f.Erase(keys[1].ID()); err != nil {
		t.Fatal("again:", err)
	}
	after, _ := os.ReadFile(path)
	if secret := before[2*80+20 : 3*80]; bytes.Contains(after, secret[:16]) || bytes.Contains(after, secret[44:]) {
		t.Fatal("the key is still in the file")
	}
	for i, want := range []error{nil, sessionkeys.ErrErased, nil} {
		if _, err := f.Key(keys[i].ID()); !errors.Is(err, want) {
			t.Errorf("key %d: %v, want %v", i, err, want)
		}
	}
}

// TestUnknown: keys that another copy of the file has in the same slots, or that it has not
// written, are not found, and not taken for erased ones.
func TestUnknown(t *testing.T) {
	_, f, _ := create(t, 1)
	_, _, foreign := create(t, 5)
	for _, k := range foreign {
		if _, err := f.Key(k.ID()); !errors.Is(err, sessionkeys.ErrUnknown) {
			t.Errorf("%x: %v", k.ID(), err)
		}
		if err := f.Erase(k.ID()); err != nil {
			t.Error(err)
		}
	}
	lost, err := f.New()
	if err != nil {
		t.Fatal(err)
	}
	f.Discard()
	kept, err := f.New()
	if err := errors.Join(err, f.Sync()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Key(lost.ID()); !errors.Is(err, sessionkeys.ErrUnknown) {
		t.Error("a key that was not written:", err)
	}
	if _, err := f.Key(kept.ID()); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"", "short", strings.Repeat("\xff", 16)} {
		if _, err := sessionkeys.ParseID([]byte(id)); !errors.Is(err, sessionkeys.ErrUnknown) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestTornSlot: what a crash leaves of a new slot is overwritten by the next one.
func TestTornSlot(t *testing.T) {
	path, f, keys := create(t, 2)
	_ = f.Close()
	if err := os.Truncate(path, 3*80-13); err != nil {
		t.Fatal(err)
	}
	f, err := sessionkeys.Open(path, master)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	k, err := f.New()
	if err := errors.Join(err, f.Sync()); err != nil {
		t.Fatal(err)
	}
	_, err1 := f.Key(keys[0].ID())
	_, err2 := f.Key(k.ID())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
}

// TestWrongMaster: another master key, and another file, are refused.
func TestWrongMaster(t *testing.T) {
	path, _, _ := create(t, 1)
	if _, err := sessionkeys.Open(path, other); !errors.Is(err, sessionkeys.ErrWrongMaster) {
		t.Error(err)
	}
	if _, err := sessionkeys.Open(path, other[1:]); !errors.Is(err, sessionkeys.ErrForm) {
		t.Error(err)
	}
	for _, content := range []string{"", "text", strings.Repeat("x", 300)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sessionkeys.Open(path, master); !errors.Is(err, sessionkeys.ErrNotOurs) {
			t.Errorf("%.4q: %v", content, err)
		}
		if _, err := sessionkeys.Rotate(path, master, other); !errors.Is(err, sessionkeys.ErrNotOurs) {
			t.Errorf("rotate %.4q: %v", content, err)
		}
		if err := sessionkeys.Copy(path, path+".copy"); !errors.Is(err, sessionkeys.ErrNotOurs) {
			t.Errorf("copy %.4q: %v", content, err)
		}
	}
}

// TestRotate: after a rotation the keys are the same, erased ones stay erased, and only the
// new master key opens the file. The blocks of the old file are overwritten.
func TestRotate(t *testing.T) {
	path, f, keys := create(t, 1000)
	sealed := keys[5].SealEvent(0, []byte("hello"))
	if err := f.Erase(keys[6].ID()); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	old, err := os.Open(path) // as a program that looks at the blocks of the disk
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if n, err := sessionkeys.Rotate(path, master, other); n != 999 || err != nil {
		t.Fatal(n, err)
	}
	left := make([]byte, 1001*80)
	if _, err := old.ReadAt(left, 0); err != nil || len(bytes.Trim(left, "\x00")) > 0 {
		t.Error("the old file was not overwritten", err)
	}
	if _, err := sessionkeys.Open(path, master); !errors.Is(err, sessionkeys.ErrWrongMaster) {
		t.Error("the old master key:", err)
	}
	if n, err := sessionkeys.Rotate(path, master, other); n != 0 || err != nil {
		t.Error("again:", n, err)
	}
	if f, err = sessionkeys.Open(path, other); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	k, err := f.Key(keys[5].ID())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.OpenEvent(0, sealed); string(got) != "hello" || err != nil {
		t.Error(string(got), err)
	}
	if _, err := f.Key(keys[6].ID()); !errors.Is(err, sessionkeys.ErrErased) {
		t.Error(err)
	}
}

// TestRotateKilled: a rotation that was killed before it has replaced the file changes
// nothing, the next who opens the file overwrites what is left of it, and the next rotation
// completes.
func TestRotateKilled(t *testing.T) {
	path, f, keys := create(t, 10)
	_ = f.Close()
	left := []byte("half of a file")
	if err := os.WriteFile(path+".new", left, 0o600); err != nil {
		t.Fatal(err)
	}
	blocks, err := os.Open(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	defer blocks.Close()
	f, err = sessionkeys.Open(path, master)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if b, err := io.ReadAll(blocks); err != nil || bytes.Contains(b, left) {
		t.Errorf("the file that is left has %q, %v", b, err)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file is left:", err)
	}
	if n, err := sessionkeys.Rotate(path, master, other); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file is left:", err)
	}
	if f, err = sessionkeys.Open(path, other); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Key(keys[9].ID()); err != nil {
		t.Error(err)
	}
}

// TestCopy: a copy has the keys of the file, and a later copy over it has none that were
// erased meanwhile, not in the blocks of the earlier copy either.
func TestCopy(t *testing.T) {
	path, f, keys := create(t, 2)
	to := path + ".copy"
	if err := sessionkeys.Copy(path, to); err != nil {
		t.Fatal(err)
	}
	earlier, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	if err := errors.Join(f.Erase(keys[0].ID()), sessionkeys.Copy(path, to)); err != nil {
		t.Fatal(err)
	}
	left := make([]byte, 3*80)
	if _, err := earlier.ReadAt(left, 0); err != nil || len(bytes.Trim(left, "\x00")) > 0 {
		t.Error("the earlier copy was not overwritten", err)
	}
	c, err := sessionkeys.Open(to, master)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err1 := c.Key(keys[0].ID())
	_, err2 := c.Key(keys[1].ID())
	if !errors.Is(err1, sessionkeys.ErrErased) || err2 != nil {
		t.Error(err1, err2)
	}
}

// TestParseMaster: a master key is read in each of its forms, and nothing else is one.
func TestParseMaster(t *testing.T) {
	for _, text := range []string{
		sessionkeys.NewMaster(), sessionkeys.NewMaster() + "\n", strings.TrimRight(sessionkeys.NewMaster(), "="),
		hex.EncodeToString(master), " " + strings.ToUpper(hex.EncodeToString(master)) + "\r\n",
	} {
		if key, err := sessionkeys.ParseMaster(text); err != nil || len(key) != sessionkeys.KeySize {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "password", hex.EncodeToString(master[1:]), strings.Repeat("zz", 32), sessionkeys.NewMaster() + "AAAA"} {
		if _, err := sessionkeys.ParseMaster(text); !errors.Is(err, sessionkeys.ErrForm) || strings.Contains(err.Error(), text) && text != "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}
