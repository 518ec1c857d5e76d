package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestStorageCommands runs every command of tapedeck in docs/storage.md, in its order. A server
// is stopped when it says that it serves.
func TestStorageCommands(t *testing.T) {
	doc, err := os.ReadFile("../../docs/storage.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("TAPEDECK_WORK", t.TempDir())
	safe := t.TempDir() + "/"
	run := func(line string) {
		t.Helper()
		args := strings.Fields(strings.ReplaceAll(line, "/safe/", safe))[1:]
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		out := &firstLine{stop: func() {}}
		if args[0] == "serve" {
			args, out.stop = append(args, "--listen", "127.0.0.1:0", "--data", "tapedeck-data"), stop
		}
		if code := Main(ctx, args, strings.NewReader(""), out, out); code != 0 || out.Len() == 0 {
			t.Errorf("%s ends with code %d: %s", line, code, out)
		}
		if key := slices.Index(args, "--encryption-key"); key >= 0 {
			t.Setenv("TAPEDECK_ENCRYPTION_KEY", args[key+1])
		}
	}
	run("tapedeck create demo --data tapedeck-data")
	seen := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(doc, -1) {
		for line := range strings.Lines(string(block[1])) {
			if strings.HasPrefix(line, "tapedeck ") {
				seen++
				run(strings.TrimSpace(line))
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d commands were found", seen)
	}
}

// A firstLine calls stop when it has a line.
type firstLine struct {
	mu sync.Mutex
	bytes.Buffer
	stop func()
}

func (f *firstLine) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes.Contains(b, []byte("\n")) {
		f.stop()
	}
	return f.Buffer.Write(b)
}
