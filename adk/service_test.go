package adk_test

import (
	"context"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/adk"
	"github.com/tapedeck/tapedeck/deck"
)

// open returns a deck in memory, or in a folder if dir is not "".
func open(t testing.TB, dir string) *deck.Deck {
	t.Helper()
	d, err := deck.Open(t.Context(), dir, deck.Options{
		InMemory: dir == "",
		Agents:   []deck.Agent{{Name: "app", Runner: tapedeck.RunnerFunc(nil)}}, // AG-UI and A2A have their endpoints by agent
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(context.Background()) })
	return d
}

// TestSuite runs the public suite of ADK for services of sessions, on both stores.
func TestSuite(t *testing.T) {
	for name, dir := range map[string]func(*testing.T) string{
		"memory": func(*testing.T) string { return "" },
		"sqlite": func(t *testing.T) string { return t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}, func(t *testing.T) session.Service {
				return adk.NewService(open(t, dir(t)), adk.Options{})
			})
		})
	}
}
