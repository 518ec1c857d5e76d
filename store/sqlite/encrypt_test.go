package sqlite_test

import (
	"bytes"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
)

// masterKey is the master key of the tests.
var masterKey = bytes.Repeat([]byte{7}, sessionkeys.KeySize)

// TestEncryptedStore: with encryption, a store keeps the whole contract.
func TestEncryptedStore(t *testing.T) {
	storetest.Quick(t, 10)
	storetest.Run(t, suite(sqlite.Options{Key: masterKey}, 8192))
}

// TestEncryptedStoreWithoutMemory runs the part of the suite about what is stored, with a
// store that reads all from the database, as TestStoreWithoutMemory does.
func TestEncryptedStoreWithoutMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as TestEncryptedStore, and nearly all of it is the same")
	}
	storetest.Quick(t, 10)
	storetest.RunReopened(t, suite(sqlite.Options{Key: masterKey, HotSessions: 1, Readers: 1}, 3))
}

func TestEncryptedSubscriptions(t *testing.T) {
	storetest.RunSubscriptions(t, suite(sqlite.Options{Key: masterKey}, 8192), func(s tapedeck.Store) storetest.Subscriptions { return s.(*sqlite.Store).Subscriptions() })
}

// TestEncryptedIndex: with encryption the search index is in memory, and keeps its contract.
func TestEncryptedIndex(t *testing.T) {
	storetest.RunIndex(t, func(t testing.TB) (storetest.Store, storetest.Index) {
		clock := storetest.NewClock()
		s := open(t, t.TempDir(), sqlite.Options{Now: clock.Now, Key: masterKey})
		return storetest.Store{Store: s, Clock: clock}, openIndex(t, s)
	})
}
