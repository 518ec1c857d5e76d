package sqlite_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// TestListIsNotAhead lists sessions between a commit and its publication: no head in
// the list is beyond what can be read.
func TestListIsNotAhead(t *testing.T) {
	var holds atomic.Bool
	committed, publish := make(chan struct{}), make(chan struct{})
	s := open(t, t.TempDir(), sqlite.Options{Commit: func(commit func() error) error {
		err := commit()
		if holds.CompareAndSwap(true, false) {
			committed <- struct{}{}
			<-publish
		}
		return err
	}})
	create(t, s, "a")
	add(t, s, "a", 3)
	holds.Store(true)
	done := make(chan error)
	go func() {
		_, err := s.Append(context.Background(), tapedeck.Append{Session: "a", Events: chunks(1)})
		done <- err
	}()
	<-committed
	list, err := s.List(t.Context(), tapedeck.Filter{})
	must(t, err)
	if len(list.Sessions) != 1 || list.Sessions[0].Head != 3 {
		t.Errorf("it lists %+v before it is published", list)
	}
	close(publish)
	must(t, <-done)
	if list, err = s.List(t.Context(), tapedeck.Filter{}); err != nil || list.Sessions[0].Head != 4 {
		t.Errorf("then it lists %+v, %v", list, err)
	}
}
