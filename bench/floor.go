package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// The goals for appends were set on another machine. The floor servers show the limits of
// this machine. They use the same HTTP server as Tapedeck, but do much less than a log
// must do: they answer appends to any stream. The first stores nothing. The second writes
// the bytes of all waiting requests over the beginning of a file and waits for the disk.
// A connection that waits for each answer cannot be faster than that.

const (
	floorNothing = "nothing"
	floorBytes   = "bytes"
)

// measureFloors measures the minimal cost of an append on this machine.
func measureFloors(ctx context.Context, o options, r *report) error {
	for _, f := range []struct{ kind, name string }{
		{floorNothing, "net/http alone, stores nothing"},
		{floorBytes, "net/http and one file, one fsync for all waiting requests"},
	} {
		for _, connections := range []int{64, 1} {
			name := fmt.Sprintf("appends of 256 B, %d connections: %s", connections, f.name)
			if connections == 1 {
				name = fmt.Sprintf("appends of 256 B, 1 connection: %s", f.name)
			}
			if !r.wants(name) {
				continue
			}
			var rates, costs []float64
			for range o.rounds {
				x, err := measureFloor(ctx, f.kind, connections, o.length)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				rates, costs = append(rates, x.rate), append(costs, x.cost)
			}
			r.floor(connections, name, quantile(rates, .5), quantile(costs, .5))
		}
	}
	return nil
}

func measureFloor(ctx context.Context, kind string, connections int, length time.Duration) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return result{}, err
	}
	p, err := start(ctx, dir, self, "-floor", kind, "-out", filepath.Join(dir, "file"))
	if err != nil {
		return result{}, err
	}
	defer p.stop()
	return appends(p, postLean, connections, length)
}

// serveFloor runs a floor server. It prints its URL and serves until it is killed.
func serveFloor(kind, file string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	store := func([]byte) error { return nil }
	if kind == floorBytes {
		b, err := newByteFile(file)
		if err != nil {
			return err
		}
		store = b.append
	}
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusCreated)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err == nil {
			err = store(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Stream-Next-Offset", "0000000000000001_0000000000000000")
		w.WriteHeader(http.StatusNoContent)
	})}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"url": "http://" + l.Addr().String(), "pid": os.Getpid()}); err != nil {
		return err
	}
	return s.Serve(l)
}

// A byteFile writes the bytes of all waiting appends with one fsync.
type byteFile struct {
	file *os.File
	wake chan struct{}

	mu    sync.Mutex
	group *byteGroup
}

type byteGroup struct {
	bytes []byte
	done  chan struct{}
	err   error // set before done is closed
}

func newByteFile(name string) (*byteFile, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	b := &byteFile{file: f, wake: make(chan struct{}, 1), group: &byteGroup{done: make(chan struct{})}}
	go b.run()
	return b, nil
}

func (b *byteFile) append(p []byte) error {
	b.mu.Lock()
	g := b.group
	g.bytes = append(g.bytes, p...)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	<-g.done
	return g.err
}

func (b *byteFile) run() {
	for range b.wake {
		b.mu.Lock()
		g := b.group
		b.group = &byteGroup{bytes: make([]byte, 0, cap(g.bytes)), done: make(chan struct{})}
		b.mu.Unlock()
		if len(g.bytes) > 0 {
			if _, g.err = b.file.WriteAt(g.bytes, 0); g.err == nil {
				g.err = b.file.Sync()
			}
		}
		close(g.done)
	}
}

// close ends the writer of the file. No append may be waiting.
func (b *byteFile) close() error {
	close(b.wake)
	return b.file.Close()
}
