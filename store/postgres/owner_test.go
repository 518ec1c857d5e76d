package postgres_test

import (
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/store/postgres"
)

func look(t *testing.T, w *postgres.Watch) postgres.Owner {
	t.Helper()
	o, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestWatch: a watch sees the owner and its address, then that the owner has released the
// lease, then the next owner. The key stays the same.
func TestWatch(t *testing.T) {
	o := postgres.Options{URL: place(t), Name: postgres.NewName(), Address: "http://one.example:4747"}
	w, err := postgres.NewWatch(o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if got := look(t, w); got.Name != "" || got.Left > 0 {
		t.Errorf("before there are tables, the owner is %+v", got)
	}
	first := open(t, o)
	owner := look(t, w)
	if owner.Name != o.Name || owner.Address != o.Address || len(owner.Key) < 64 || owner.Left <= 0 || owner.Left > postgres.DefaultLease {
		t.Errorf("got %+v", owner)
	}
	if !first.Owns(t.Context()) {
		t.Error("the owner does not know that it is")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := look(t, w); got.Left > 0 {
		t.Errorf("the lease was given back, and has %v left", got.Left)
	}
	if first.Owns(t.Context()) {
		t.Error("a closed store says that it owns the database")
	}
	open(t, postgres.Options{URL: o.URL}) // its owner cannot be reached by others
	if got := look(t, w); got.Name == o.Name || got.Name == "" || got.Address != "" || string(got.Key) != string(owner.Key) {
		t.Errorf("after a take-over: %+v, before it %+v", got, owner)
	}
}

// TestOwnsAfterPause: after its lease has run out, an owner asks the database whether another
// server has taken over.
func TestOwnsAfterPause(t *testing.T) {
	o := postgres.Options{URL: place(t), Lease: 300 * time.Millisecond}
	lost := make(chan error, 1)
	paused := o
	paused.OnLost = func(err error) { lost <- err }
	first := open(t, paused)
	first.StopRenewing()
	o.Standby = true
	second := open(t, o) // it waits for the end of the lease
	first.Renew()
	if first.Owns(t.Context()) {
		t.Error("it does not know that another server has taken over")
	}
	<-lost
	if !second.Owns(t.Context()) {
		t.Error("the new owner does not own the database")
	}
}
