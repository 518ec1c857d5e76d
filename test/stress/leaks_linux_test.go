package stress

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestNothingLeaks calls all verbs twice for the same time, with other clients each time. When
// these have left, the server has about as many goroutines, open files and bytes in memory
// the second time as the first time, and its write-ahead log is as small. -stress.duration is
// the whole time: a day for a soak test.
func TestNothingLeaks(t *testing.T) {
	data := keptOnFailure(t)
	w := &world{t: t, data: data, server: testserver.Start(t, data), verbs: allVerbs()}
	w.half(*duration / 2)
	first := w.rest(usage{})
	w.half(*duration / 2)
	second := w.rest(first)
	t.Logf("after the first half:  %v", first)
	t.Logf("after the second half: %v", second)
	if why := second.above(first); why != "" {
		t.Errorf("the server has more %s", why)
		w.server.Dump()
		t.Logf("the log of the server:\n%s", w.server.Log())
	}
}

// half calls all verbs for a while, and ends all clients.
func (w *world) half(d time.Duration) {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	w.watch(ctx, cancel)
	var working sync.WaitGroup
	for i := range w.verbs {
		for range w.verbs[i].workers {
			working.Go(func() { w.work(ctx, &w.verbs[i]) })
		}
	}
	working.Wait()
	w.watching.Wait()
	http.DefaultClient.CloseIdleConnections()
}

// A usage is what a server occupies.
type usage struct {
	goroutines, files int64
	heap, wal         int64 // bytes
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d open files, %d KiB of objects, %d KiB of write-ahead log", u.goroutines, u.files, u.heap>>10, u.wal>>10)
}

// above says of what a server has clearly more than before. Caches and pools may differ a
// little; a leak of the thousands of calls of a half is more than that.
func (u usage) above(before usage) string {
	switch {
	case u.goroutines > before.goroutines+20:
		return "goroutines"
	case u.files > before.files+20:
		return "open files"
	case u.heap > before.heap*3/2+16<<20:
		return "memory"
	case u.wal > 80<<20: // it is cut to 64 MiB
		return "of its write-ahead log"
	}
	return ""
}

// patience is how many times rest looks, with a beat in between: runs and followers of the
// load take a while to end.
const patience = 300

// rest waits until the load has ended on the server, too, and returns what it occupies then:
// as soon as that is not above a limit, or if it no longer falls.
func (w *world) rest(limit usage) (now usage) {
	steady := 0
	for range patience {
		last := now
		now = w.usage()
		if limit.files > 0 && now.above(limit) == "" {
			return now
		}
		if steady++; now.goroutines != last.goroutines || now.files != last.files {
			steady = 0
		}
		if limit.files == 0 && steady >= 20 {
			return now
		}
		<-time.After(beat)
	}
	return now
}

var (
	goroutines = regexp.MustCompile(`goroutine profile: total (\d+)`)
	heapAlloc  = regexp.MustCompile(`# HeapAlloc = (\d+)`)
)

func (w *world) usage() (u usage) {
	w.t.Helper()
	u.goroutines = w.profiled("goroutine?debug=1", goroutines)
	u.heap = w.profiled("heap?debug=1&gc=1", heapAlloc)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.server.PID))
	if err != nil {
		w.t.Fatal(err)
	}
	u.files = int64(len(files))
	if info, err := os.Stat(filepath.Join(w.data, "tapedeck.db-wal")); err == nil {
		u.wal = info.Size()
	}
	return u
}

// profiled returns a number from a profile.
func (w *world) profiled(profile string, number *regexp.Regexp) int64 {
	w.t.Helper()
	resp, err := http.Get(w.server.URL + "/debug/pprof/" + profile)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	found := number.FindSubmatch(b)
	if err != nil || found == nil {
		w.t.Fatalf("%s: %v %.200s", profile, err, b)
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}
