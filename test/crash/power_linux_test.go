package crash

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/faultdisk"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

var (
	cuts     = flag.Int("cuts", 8, "how often the power is cut")
	diskSeed = flag.Uint64("disk-seed", 0, "repeat the power cuts of a run; 0: new ones")
)

// pad makes events so long that the write-ahead log is copied to the database many times.
var pad = strings.Repeat("x", 3000)

// A faultyDisk is a disk that loses power, with the folder where it is mounted.
type faultyDisk struct {
	*faultdisk.Disk
	t       *testing.T
	rng     *rand.Rand
	folder  string
	unmount func() error
}

func newFaultyDisk(t *testing.T) *faultyDisk {
	t.Helper()
	seed := *diskSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	d := &faultyDisk{Disk: faultdisk.New(), t: t, rng: rand.New(rand.NewPCG(seed, 0)), folder: t.TempDir()}
	d.mount()
	t.Cleanup(func() { _ = d.unmount() })
	return d
}

func (d *faultyDisk) mount() {
	d.t.Helper()
	unmount, err := d.Mount(d.folder)
	if errors.Is(err, faultdisk.ErrNotPossible) {
		d.t.Skip(err)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.unmount = unmount
}

// again unmounts the disk, does something with it, and mounts it again, with an empty page
// cache.
func (d *faultyDisk) again(what func()) {
	d.t.Helper()
	if err := d.unmount(); err != nil {
		d.t.Fatal(err)
	}
	what()
	d.mount()
}

// powerCut kills the server and loses what was not synced.
func (d *faultyDisk) powerCut(s *testserver.Server) {
	d.t.Helper()
	s.Kill()
	d.again(func() { d.Cut(d.rng) })
}

// verify returns what "tapedeck verify" prints about the data folder, and whether it found
// nothing.
func (d *faultyDisk) verify() (string, bool) {
	out, err := exec.Command(testserver.Binary(d.t), "verify", "--data", d.data()).CombinedOutput()
	return string(out), err == nil
}

func (d *faultyDisk) data() string { return filepath.Join(d.folder, "data") }

// TestPowerCut cuts the power of the disk under load, many times. What TestKill checks holds
// also then: an append is acknowledged only after a sync.
func TestPowerCut(t *testing.T) {
	n := *cuts
	if testing.Short() {
		n = min(n, 2)
	}
	disk := newFaultyDisk(t)
	w := newWorld(t)
	w.data, w.ended, w.pad = disk.data(), disk.powerCut, pad
	w.server.Store(testserver.Start(t, w.data))
	w.prepare()
	w.follow()
	for range n {
		w.round(time.Duration(20+disk.rng.IntN(300)) * time.Millisecond)
	}
	w.finish()
	t.Logf("%d power cuts, %d appends acknowledged, %d events checked, %d runs", n, w.acked.Load(), w.checked, len(w.runs))
	if w.acked.Load() < int64(n) {
		t.Error("hardly any event was written; the test proves nothing")
	}
	w.server.Load().Kill()
	if out, ok := disk.verify(); !ok {
		t.Errorf("verify: %s", out)
	}
}

// TestFailedSync lets syncs fail under load and then cuts the power. What was acknowledged
// before and after the failure is there, and nothing that was refused can be read by
// somebody who was told that it is not stored.
func TestFailedSync(t *testing.T) {
	disk := newFaultyDisk(t)
	w := newWorld(t)
	w.data, w.ended, w.insist, w.pad = disk.data(), disk.powerCut, true, pad
	w.server.Store(testserver.Start(t, w.data))
	w.prepare()
	w.follow()
	// A slow machine does little in a round, so it gets more of them until some appends were
	// refused and others acknowledged.
	rounds := int64(max(2, *cuts/2))
	proven := func() bool { return w.again.Load() > 0 && w.acked.Load() >= rounds }
	for n := int64(0); n < rounds || !proven() && n < 10*rounds; n++ {
		var timers []*time.Timer
		for _, after := range []time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 60 * time.Millisecond} {
			syncs := 1 + disk.rng.IntN(3)
			timers = append(timers, time.AfterFunc(after, func() { disk.FailSyncs(syncs) }))
		}
		w.round(150 * time.Millisecond)
		for _, timer := range timers {
			timer.Stop()
		}
		disk.FailSyncs(0)
	}
	w.finish()
	t.Logf("%d appends acknowledged, %d refused or without an answer, %d events checked", w.acked.Load(), w.again.Load(), w.checked)
	if !proven() {
		t.Error("no append was refused, or hardly any was acknowledged; the test proves nothing")
	}
	w.server.Load().Kill()
	if out, ok := disk.verify(); !ok {
		t.Errorf("verify: %s", out)
	}
}

// TestLyingDisk cuts the power of a disk that says that it has synced and has not. Nobody can
// keep acknowledged events then. But the server must not serve a damaged history: it starts
// with a dense part of it, or it says that the folder is damaged.
func TestLyingDisk(t *testing.T) {
	refused, whole := 0, 0
	for range max(2, *cuts/2) {
		disk := newFaultyDisk(t)
		w := newWorld(t)
		w.data, w.ended, w.pad = disk.data(), disk.powerCut, pad
		s := testserver.Start(t, w.data)
		w.server.Store(s)
		w.prepare()
		disk.Lie(true)
		w.load(time.Duration(300+disk.rng.IntN(1200)) * time.Millisecond)
		disk.Lie(false)
		if out, ok := disk.verify(); !ok {
			if !strings.Contains(out, "damage") && !strings.Contains(out, "malformed") {
				t.Errorf("verify does not say that the folder is damaged: %s", out)
			}
			refused++
			continue
		}
		whole++
		w.server.Store(testserver.Start(t, w.data))
		for _, wr := range w.writers {
			wr.acked = map[string]map[int64]string{} // what a disk lied about may be lost
		}
		w.runs = nil
		w.check()
	}
	t.Logf("%d folders were damaged and verify said so, %d had a dense part", refused, whole)
}

// TestBadSector makes a sector of the database unreadable. The server says so, and does not
// answer with a part of the session.
func TestBadSector(t *testing.T) {
	disk := newFaultyDisk(t)
	s := testserver.Start(t, disk.data())
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	fillSession(t, c, "s", 400)
	s.Stop(t)
	size := disk.Size("data/tapedeck.db")
	errors, answers := 0, 0
	for range 8 {
		disk.again(func() {
			disk.Repair()
			disk.Break("data/tapedeck.db", disk.rng.Int64N(size))
		})
		out, ok := disk.verify()
		// SQLite takes EIO from a read as damage, and one from a read at the opening as an error of the disk.
		if !ok && !strings.Contains(out, "damaged") && !strings.Contains(out, "malformed") && !strings.Contains(out, "the disk reports an error") {
			t.Errorf("verify does not say that the folder is damaged: %s", out)
		}
		if !ok {
			errors++
		}
		out, ok = show(t, disk.data())
		if ok && strings.Count(out, "test.note") != 400 {
			t.Errorf("a part of the session was shown as if it were all of it: %d of 400 events", strings.Count(out, "test.note"))
		}
		if ok {
			answers++
		}
	}
	t.Logf("of 8 sectors, verify found %d; the session could be read in %d cases", errors, answers)
	if errors == 0 {
		t.Error("no sector was found; the test proves nothing")
	}
}

// TestDiskErrors lets each write fail with EIO under a running server.
func TestDiskErrors(t *testing.T) {
	disk := newFaultyDisk(t)
	s := testserver.Start(t, disk.data())
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	fillSession(t, c, "s", 1)
	for range 3 {
		disk.FailWrites(syscall.EIO)
		_, err := c.Append(t.Context(), "s", strings.NewReader(`{"type":"test.note","data":{}}`), client.AppendOptions{})
		if err == nil || !strings.Contains(err.Error(), "unavailable") && !strings.Contains(err.Error(), "disk") {
			t.Errorf("an append on a disk that fails: %v", err)
		}
		p, err := c.Page(t.Context(), "s", client.PageOptions{})
		if err != nil || p.Head != 2 {
			t.Fatalf("a read meanwhile: head %d, %v; want 2", p.Head, err)
		}
		disk.FailWrites(0)
	}
	if _, err := c.Append(t.Context(), "s", strings.NewReader(`{"type":"test.note","data":{}}`), client.AppendOptions{}); err != nil {
		t.Fatalf("an append when the disk works again: %v", err)
	}
	disk.powerCut(s)
	if out, ok := disk.verify(); !ok {
		t.Error(out)
	}
	if out, _ := show(t, disk.data()); strings.Count(out, "test.note") != 2 {
		t.Errorf("want both events after the power cut: %s", out)
	}
}

// fillSession creates a session with events.
func fillSession(t *testing.T, c *client.Client, id string, events int) {
	t.Helper()
	if _, err := c.Create(t.Context(), api.NewSession{ID: id}); err != nil {
		t.Fatal(err)
	}
	event := `{"type":"test.note","data":{"pad":"` + strings.Repeat("x", 300) + `"}}` + "\n"
	for range events {
		if _, err := c.Append(t.Context(), id, strings.NewReader(event), client.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// show returns the events of session s as lines, and whether the command succeeded.
func show(t *testing.T, data string) (string, bool) {
	out, err := exec.Command(testserver.Binary(t), "export", "s", "--format", "ndjson", "--data", data).Output()
	return string(out), err == nil
}
