package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestByteFile checks that the bytes of an append are in the file when it returns.
func TestByteFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	b, err := newByteFile(name)
	if err != nil {
		t.Fatal(err)
	}
	defer close(b.wake)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := b.append([]byte("0123456789")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if info, err := os.Stat(name); err != nil || info.Size() < 10 || info.Size() > 80 {
		t.Errorf("the file is %+v (%v)", info, err)
	}
	_ = b.file.Close()
	if err := b.append([]byte("x")); err == nil {
		t.Error("an append to a closed file succeeded")
	}
}
