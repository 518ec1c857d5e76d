package intake_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tapedeck/tapedeck/internal/intake"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestMemoryOfArrivedBytes: a body that announces 64 MiB and ends early costs a small
// multiple of the bytes that have arrived.
func TestMemoryOfArrivedBytes(t *testing.T) {
	const promised, came = 64 << 20, 256 << 10
	cut := io.MultiReader(bytes.NewReader(make([]byte, came)), iotest.ErrReader(errors.New("reset")))
	n := allocated(func() {
		if _, err := intake.ReadAll(cut, promised); err == nil {
			t.Error("it was read to its end")
		}
	})
	if n > 5*came {
		t.Errorf("%d KiB were allocated for %d KiB", n>>10, came>>10)
	}
}

// TestReadAll: a body of any size is read completely, into memory of exactly that size.
func TestReadAll(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 16 << 10, 16<<10 + 1, 100_000, 1 << 20} {
		want := bytes.Repeat([]byte("x"), size)
		for _, declared := range []int64{int64(size), -1} {
			got, err := intake.ReadAll(iotest.HalfReader(bytes.NewReader(want)), declared)
			if err != nil || !bytes.Equal(got, want) || cap(got) != size {
				t.Errorf("%d bytes, declared %d: got %d with a capacity of %d, %v", size, declared, len(got), cap(got), err)
			}
		}
		if _, err := intake.ReadAll(bytes.NewReader(want), int64(size)+1); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, one less than declared: %v", size, err)
		}
	}
}

// A holder reads bodies through a gate, and keeps them until a test ends them.
type holder struct {
	gate *intake.Gate
	held chan chan struct{} // for each body that was read, a channel that ends it
}

func newHolder(budget int64) *holder {
	return &holder{gate: intake.New(budget), held: make(chan chan struct{})}
}

func (h *holder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.gate.Serve(w, r, http.HandlerFunc(h.read), func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusUnsupportedMediaType)
	})
}

func (h *holder) read(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/lines") {
		intake.ByLine(r)
	}
	_, err := intake.ReadAll(r.Body, r.ContentLength)
	if refused, status := intake.Refused(err); refused != nil {
		w.WriteHeader(status)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/keep") {
		end := make(chan struct{})
		h.held <- end
		<-end
	}
}

func (h *holder) post(path, body string, header ...string) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	h.ServeHTTP(w, r)
	return w.Code
}

// TestBudget: large bodies fill three quarters of the budget, small ones all of it. An
// answered body does not count any more.
func TestBudget(t *testing.T) {
	h := newHolder(1 << 20)
	large, small := strings.Repeat("x", 700<<10), strings.Repeat("x", 40<<10)
	kept := make(chan int)
	go func() { kept <- h.post("/keep", large) }()
	end := <-h.held
	if got := h.post("/", large); got != http.StatusServiceUnavailable {
		t.Errorf("a second large body: %d", got)
	}
	if got := h.post("/", small); got != http.StatusOK {
		t.Errorf("a small body beside a large one: %d", got)
	}
	if got := h.gate.Held(); got != int64(len(large)) {
		t.Errorf("%d bytes count, want those of the large body", got)
	}
	close(end)
	if got := <-kept; got != http.StatusOK || h.gate.Held() != 0 {
		t.Errorf("%d, and %d bytes count afterwards", got, h.gate.Held())
	}
	if got := h.post("/", large); got != http.StatusOK {
		t.Errorf("a large body afterwards: %d", got)
	}
}

// TestLines: of a body that is read by line, only the current line counts.
func TestLines(t *testing.T) {
	h := newHolder(100 << 10)
	if got := h.post("/lines", strings.Repeat("{}\n", 200<<10)); got != http.StatusOK {
		t.Errorf("short lines: %d", got)
	}
	if got := h.post("/lines", strings.Repeat("x", 600<<10)); got != http.StatusServiceUnavailable {
		t.Errorf("one line without end: %d", got)
	}
}

func TestContentEncoding(t *testing.T) {
	h := newHolder(0)
	for encoding, want := range map[string]int{"": 200, "identity": 200, "Identity": 200, "gzip": 415, "br": 415, "identity, gzip": 415} {
		if got := h.post("/", "x", "Content-Encoding", encoding); got != want {
			t.Errorf("%q: %d, want %d", encoding, got, want)
		}
	}
}

// TestOneGetsThrough: of several bodies that arrive at once and do not fit together, at
// least one is not refused. Each is read in small parts, in turn with the others.
func TestOneGetsThrough(t *testing.T) {
	for range 20 {
		h := newHolder(1 << 20)
		var stored atomic.Int64
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				if h.post("/", strings.Repeat("x", 700<<10)) == http.StatusOK {
					stored.Add(1)
				}
			})
		}
		if all.Wait(); stored.Load() == 0 {
			t.Fatal("all bodies were refused")
		}
		if h.gate.Held() != 0 {
			t.Fatalf("%d bytes count afterwards", h.gate.Held())
		}
	}
}

// A deadlines is a ResponseWriter that records the read deadline.
type deadlines struct {
	http.ResponseWriter
	last  time.Time
	onSet func()
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	if f := d.onSet; f != nil && at.IsZero() {
		d.onSet = nil
		f()
	}
	d.last = at
	return nil
}

// TestCutBeforeRead: a read that begins while an open body is cut does not wait for its
// client.
func TestCutBeforeRead(t *testing.T) {
	w := &deadlines{ResponseWriter: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("line\n"))
	intake.New(0).Serve(w, r, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		cut := intake.Open(rw, r)
		w.onSet = cut
		_, _ = r.Body.Read(make([]byte, 8))
		if w.last.IsZero() {
			t.Error("the read has no deadline after the cut")
		}
	}), nil)
}
