package faultdisk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMounted uses the disk as a process does.
func TestMounted(t *testing.T) {
	d := New()
	folder, unmount := mounted(t, d)
	path := filepath.Join(folder, "a")
	must(t, os.Mkdir(path, 0o700))
	must(t, os.WriteFile(filepath.Join(path, "f"), []byte("hello"), 0o600))
	must(t, os.Rename(filepath.Join(path, "f"), filepath.Join(folder, "g")))
	f, err := os.OpenFile(filepath.Join(folder, "g"), os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("HE"), 0)
	must(t, err)
	must(t, f.Truncate(4))
	must(t, f.Sync())
	_, err = f.WriteAt([]byte("never synced"), 4)
	must(t, err)
	must(t, f.Close())
	if got, err := os.ReadFile(filepath.Join(folder, "g")); err != nil || string(got) != "HEllnever synced" {
		t.Fatalf("%q, %v", got, err)
	}
	if err := os.Remove(filepath.Join(folder, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	must(t, unmount())
	d.Cut(never())
	folder, _ = mounted(t, d)
	if got, err := os.ReadFile(filepath.Join(folder, "g")); err != nil || string(got) != "HEll" {
		t.Fatalf("after the power cut: %q, %v", got, err)
	}
	if list, err := os.ReadDir(folder); err != nil || len(list) != 2 || !list[0].IsDir() {
		t.Fatalf("%v, %v", list, err)
	}
}

// TestFaults makes syncs, writes and reads fail.
func TestFaults(t *testing.T) {
	d := New()
	folder, unmount := mounted(t, d)
	path := filepath.Join(folder, "f")
	must(t, os.WriteFile(path, make([]byte, 2048), 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	must(t, f.Sync())
	d.FailSyncs(1)
	_, err = f.WriteAt([]byte("lost"), 0)
	must(t, err)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a sync that fails: %v", err)
	}
	must(t, f.Sync()) // as on Linux, this one succeeds and has not written the data
	d.FailWrites(syscall.ENOSPC)
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a write on a full disk: %v", err)
	}
	d.FailWrites(0)
	d.Lie(true)
	_, err = f.WriteAt([]byte("lied"), 512)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	must(t, unmount())
	d.Cut(never())
	if !d.Break("f", 1024) || d.Break("f", 4096) || d.Break("g", 0) {
		t.Fatal("Break does not know which sectors exist")
	}
	folder, _ = mounted(t, d)
	f, err = os.Open(filepath.Join(folder, "f"))
	must(t, err)
	defer f.Close()
	if _, err := f.ReadAt(make([]byte, 512), 1024); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a sector that cannot be read: %v", err)
	}
	d.Repair()
	got := make([]byte, 2048)
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, make([]byte, 2048)) {
		t.Fatalf("%v; something that was not synced is there", err)
	}
}

// TestCutIsTorn cuts the power after a write of many sectors: some cuts keep a part of it, in
// whole sectors.
func TestCutIsTorn(t *testing.T) {
	torn := 0
	for seed := range uint64(50) {
		d := New()
		f := d.newFile(syscall.S_IFREG)
		d.set(entry{dir: d.root, name: "f", file: f})
		d.write(f, make([]byte, 8*sector), 0)
		d.sync(f)
		d.write(f, bytes.Repeat([]byte{1}, 8*sector), 0)
		d.Cut(rand.New(rand.NewPCG(seed, 0)))
		kept := 0
		for at := 0; at < len(f.data); at += sector {
			switch part := f.data[at : at+sector]; {
			case bytes.Equal(part, bytes.Repeat([]byte{1}, sector)):
				kept++
			case !bytes.Equal(part, make([]byte, sector)):
				t.Fatal("a sector was written in part")
			}
		}
		if len(f.data) != 8*sector {
			t.Fatalf("%d bytes", len(f.data))
		}
		if kept > 0 && kept < 8 {
			torn++
		}
	}
	if torn < 10 {
		t.Errorf("only %d of 50 cuts tore the write", torn)
	}
}

// TestNamesAreThereUpToAMoment renames and removes files without a sync.
func TestNamesAreThereUpToAMoment(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(50) {
		d := New()
		f := d.newFile(syscall.S_IFREG)
		d.set(entry{dir: d.root, name: "new", file: f})
		d.sync(f)
		d.move(d.root, "new", d.root, "f")
		d.remove(d.root, "f")
		d.Cut(rand.New(rand.NewPCG(seed, 0)))
		for _, name := range []string{"new", "f"} {
			if d.Size(name) >= 0 {
				seen[name] = true
			}
		}
		if d.Size("new") >= 0 && d.Size("f") >= 0 {
			t.Fatal("a rename is there in half")
		}
		if len(d.root.names) == 0 {
			seen["none"] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("cuts left %v; want each of the three states", seen)
	}
}

// never is a source of numbers with which a cut keeps nothing.
func never() *rand.Rand { return rand.New(zeros{}) }

type zeros struct{}

func (zeros) Uint64() uint64 { return 0 }

func mounted(t *testing.T, d *Disk) (string, func() error) {
	t.Helper()
	folder := t.TempDir()
	unmount, err := d.Mount(folder)
	if errors.Is(err, ErrNotPossible) {
		t.Skip(err)
	}
	must(t, err)
	done := false
	once := func() error {
		if done {
			return nil
		}
		done = true
		return unmount()
	}
	t.Cleanup(func() { _ = once() })
	return folder, once
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
