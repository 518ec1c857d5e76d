package migrate

import (
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
)

// starts are the kinds of stores with which a test begins.
var starts = map[string]func(testing.TB) site{"folder": folder, "database": schema}

// TestStore runs the contract of stores, as far as it is about what is stored. To reopen a
// store is to copy everything to the other kind of store.
func TestStore(t *testing.T) {
	storetest.Quick(t, 5) // each copies everything several times
	for name, first := range starts {
		t.Run(name, func(t *testing.T) { storetest.RunReopened(t, suite(first)) })
	}
}

func TestSubscriptions(t *testing.T) {
	for name, first := range starts {
		t.Run(name, func(t *testing.T) {
			storetest.RunSubscriptions(t, suite(first), func(s tapedeck.Store) storetest.Subscriptions {
				if p, ok := s.(*postgres.Store); ok {
					return p.Subscriptions()
				}
				return s.(*sqlite.Store).Subscriptions()
			})
		})
	}
}

func TestPushConfigs(t *testing.T) {
	for name, first := range starts {
		t.Run(name, func(t *testing.T) {
			storetest.RunPushConfigs(t, suite(first), func(s tapedeck.Store) storetest.PushConfigs {
				if p, ok := s.(*postgres.Store); ok {
					return p.PushConfigs()
				}
				return s.(*sqlite.Store).PushConfigs()
			})
		})
	}
}

func TestWorkflows(t *testing.T) {
	for name, first := range starts {
		t.Run(name, func(t *testing.T) {
			storetest.RunWorkflows(t, suite(first), func(s tapedeck.Store) storetest.Workflows {
				if p, ok := s.(*postgres.Store); ok {
					return p.Workflows()
				}
				return s.(*sqlite.Store).Workflows()
			})
		})
	}
}

func TestSpending(t *testing.T) {
	for name, first := range starts {
		t.Run(name, func(t *testing.T) {
			storetest.RunSpending(t, suite(first), func(s tapedeck.Store) storetest.Spending {
				if p, ok := s.(*postgres.Store); ok {
					return p.Spending()
				}
				return s.(*sqlite.Store).Spending()
			})
		})
	}
}
