package indexer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/search/indexer"
	"github.com/tapedeck/tapedeck/store/memory"
)

// A slowIndex is slow to forget a session, as an index of many gigabytes is.
type slowIndex struct {
	*documents
	forgets chan struct{}
}

type documents = memory.Index

func (x *slowIndex) Forget(ctx context.Context, session string) error {
	<-x.forgets
	return x.documents.Forget(ctx, session)
}

// TestSearchDoesNotWaitForAnErase: a search waits for at most Options.Patience, also
// while an erasure cleans the index.
func TestSearchDoesNotWaitForAnErase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		index, err := m.OpenIndex()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Create(t.Context(), tapedeck.Spec{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		slow := &slowIndex{index, make(chan struct{})}
		x := indexer.New(indexer.Options{Index: slow, Log: m, Patience: time.Second})
		forgotten := make(chan error)
		go func() { forgotten <- x.Forget(t.Context(), "s") }()
		synctest.Wait()
		began := time.Now()
		if _, err := x.Search(t.Context(), search.Query{Text: "word"}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.Forget(ctx, "s"); err == nil {
			t.Error("two calls forget at once")
		}
		close(slow.forgets)
		if err := <-forgotten; err != nil {
			t.Error(err)
		}
	})
}
