package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Workflows are the diagrams of workflows that a store keeps.
type Workflows interface {
	List(ctx context.Context) ([]store.Workflow, error)
	Versions(ctx context.Context, name string) ([]store.Workflow, error)
	Get(ctx context.Context, name, digest string) (store.Workflow, []byte, error)
	Put(ctx context.Context, w store.Workflow, diagram []byte, keep int) error
	Delete(ctx context.Context, name string) error
}

// RunWorkflows runs the suite of the diagrams of a store. open returns a new and empty
// store, and of returns the diagrams of an open store.
func RunWorkflows(t *testing.T, open func(testing.TB) Store, of func(tapedeck.Store) Workflows) {
	for name, test := range map[string]func(*testing.T, *diagrams){
		"versions": testWorkflows, "kept versions": testKeptWorkflows, "reopen": testWorkflowsReopen,
		"damaged": testDamagedWorkflow, "faults": testWorkflowFaults, "cancelled": testWorkflowsCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			d := &diagrams{world: start(t, open), t: t, of: of, at: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
			test(t, d)
		})
	}
}

// diagrams is a store with its workflows.
type diagrams struct {
	*world
	t  *testing.T
	of func(tapedeck.Store) Workflows
	at time.Time // of the next version
}

func (d *diagrams) all() Workflows { return d.of(d.Store.Store) }

// put stores the diagram "NAME digest" under a name, a minute after the version before.
func (d *diagrams) put(name, digest string, keep int) {
	d.t.Helper()
	if err := d.all().Put(d.ctx, store.Workflow{Name: name, Digest: digest, Title: "T " + digest, Added: d.at}, []byte(name+" "+digest), keep); err != nil {
		d.t.Fatal(err)
	}
	d.at = d.at.Add(time.Minute)
}

// has compares the versions of a name, newest first, as "digest minute", and reads each of
// them.
func (d *diagrams) has(name string, want ...string) {
	d.t.Helper()
	var got []string
	for i, v := range must(d.all().Versions(d.ctx, name))(d.t) {
		got = append(got, v.Digest+" "+v.Added.Format("04"))
		digests := []string{v.Digest}
		if i == 0 {
			digests = append(digests, "") // the current version
		}
		for _, digest := range digests {
			w, diagram, err := d.all().Get(d.ctx, name, digest)
			if err != nil || string(diagram) != name+" "+v.Digest {
				d.t.Errorf("version %q of %s: %q, %v", digest, name, diagram, err)
			}
			if diff := cmp.Diff(v, w); diff != "" {
				d.t.Errorf("version %q of %s (-list +get)\n%s", digest, name, diff)
			}
		}
		if v.Name != name || v.Title != "T "+v.Digest || v.Size != int64(len(name+" "+v.Digest)) {
			d.t.Errorf("got %+v", v)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Errorf("the versions of %s (-want +got)\n%s", name, diff)
	}
}

// lists compares the list, as "name=digest".
func (d *diagrams) lists(want ...string) {
	d.t.Helper()
	var got []string
	for _, w := range must(d.all().List(d.ctx))(d.t) {
		got = append(got, w.Name+"="+w.Digest)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Errorf("the workflows (-want +got)\n%s", diff)
	}
}

func (d *diagrams) lacks(name, digest string) {
	d.t.Helper()
	_, _, err := d.all().Get(d.ctx, name, digest)
	if err := isKind(err, tapedeck.NotFound); err != nil {
		d.t.Errorf("%s %q: %v", name, digest, err)
	}
}

// A diagram that does not have its digest is not served.
func testDamagedWorkflow(t *testing.T, d *diagrams) {
	sound := sha256.Sum256([]byte("sound sha256"))
	for name, digest := range map[string]string{"sound": "sha256:" + hex.EncodeToString(sound[:]), "damaged": "sha256:" + strings.Repeat("0", 64)} {
		if err := d.all().Put(d.ctx, store.Workflow{Name: name, Digest: digest, Added: d.at}, []byte(name+" sha256"), 9); err != nil {
			t.Fatal(err)
		}
	}
	if _, diagram, err := d.all().Get(d.ctx, "sound", ""); err != nil || string(diagram) != "sound sha256" {
		t.Errorf("%q, %v", diagram, err)
	}
	if _, _, err := d.all().Get(d.ctx, "damaged", ""); !errors.Is(err, tapedeck.ErrDamaged) {
		t.Errorf("a damaged diagram: %v", err)
	}
}

func testWorkflows(t *testing.T, d *diagrams) {
	d.lists()
	d.has("b")
	d.lacks("b", "")
	if err := isKind(d.all().Delete(d.ctx, "b"), tapedeck.NotFound); err != nil {
		t.Error(err)
	}
	d.put("b", "1", 9)
	d.put("a", "1", 9)
	d.put("b", "2", 9)
	d.put("b", "2", 9) // it is the current version: nothing changes
	d.has("b", "2 02", "1 00")
	d.has("a", "1 01")
	d.lists("a=1", "b=2")
	d.lacks("b", "3")
	d.put("b", "1", 9) // an earlier version becomes the current one
	d.has("b", "1 04", "2 02")
	d.lists("a=1", "b=1")
	if err := d.all().Delete(d.ctx, "b"); err != nil {
		t.Fatal(err)
	}
	d.has("b")
	d.lacks("b", "")
	d.lacks("b", "1")
	d.lists("a=1")
	d.put("b", "2", 9)
	d.has("b", "2 05")
}

// testKeptWorkflows: the oldest versions beyond the limit are removed.
func testKeptWorkflows(_ *testing.T, d *diagrams) {
	d.put("other", "1", 9)
	for _, digest := range []string{"1", "2", "3", "1", "4"} {
		d.put("a", digest, 3)
	}
	d.has("a", "4 05", "1 04", "3 03")
	d.lacks("a", "2")
	d.put("a", "5", 1)
	d.has("a", "5 06")
	d.has("other", "1 00")
}

func testWorkflowsReopen(t *testing.T, d *diagrams) {
	if d.Reopen == nil {
		t.Skip("the store forgets")
	}
	big := make([]byte, 3<<20) // larger than a page of the database and than a group of the writer
	for i := range big {
		big[i] = byte(i * i >> 7)
	}
	if err := d.all().Put(d.ctx, store.Workflow{Name: "big", Digest: "x", Added: d.at}, big, 9); err != nil {
		t.Fatal(err)
	}
	d.put("a", "1", 9)
	d.put("a", "2", 9)
	d.reopen()
	d.has("a", "2 01", "1 00")
	if w, got, err := d.all().Get(d.ctx, "big", "x"); err != nil || w.Size != int64(len(big)) || string(got) != string(big) {
		t.Errorf("got %+v, %d bytes, %v", w, len(got), err)
	}
}

// testWorkflowFaults: a change that fails changes nothing.
func testWorkflowFaults(t *testing.T, d *diagrams) {
	if d.FailCommits == nil {
		t.Skip("the store has no commit that can be made to fail")
	}
	d.put("a", "1", 9)
	d.FailCommits(true)
	for call, err := range map[string]error{
		"put":    d.all().Put(d.ctx, store.Workflow{Name: "a", Digest: "2"}, []byte("a 2"), 1),
		"delete": d.all().Delete(d.ctx, "a"),
	} {
		if err := isKind(err, tapedeck.Unavailable); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	d.has("a", "1 00")
	d.FailCommits(false)
	d.put("a", "2", 9)
	d.has("a", "2 01", "1 00")
}

func testWorkflowsCancelled(t *testing.T, d *diagrams) {
	d.put("a", "1", 9)
	ctx, cancel := context.WithCancel(d.ctx)
	cancel()
	x := d.all()
	_, list := x.List(ctx)
	_, versions := x.Versions(ctx, "a")
	_, _, get := x.Get(ctx, "a", "")
	for call, err := range map[string]error{
		"list": list, "versions": versions, "get": get, "delete": x.Delete(ctx, "a"),
		"put": x.Put(ctx, store.Workflow{Name: "a", Digest: "2"}, []byte("x"), 9),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
	d.has("a", "1 00")
}
