package adk_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/adk"
	"github.com/tapedeck/tapedeck/client"
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

// overHTTP begins the names of the tests in which the service is a client of a server.
const overHTTP = "TestOverHTTP/"

// serviceOn returns a service on a deck, or on a server of the deck.
func serviceOn(t testing.TB, d *deck.Deck) *adk.Service {
	t.Helper()
	if !strings.HasPrefix(t.Name(), overHTTP) {
		return adk.NewService(d, adk.Options{})
	}
	server := httptest.NewServer(d.Handler())
	t.Cleanup(server.Close)
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return adk.NewRemoteService(c, adk.Options{})
}

// TestOverHTTP repeats tests with a service that is a client of a server.
func TestOverHTTP(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"Suite": TestSuite, "SameAsADK": TestSameAsADK, "Run": TestRun, "Streaming": TestStreaming, "ChangedText": TestChangedText,
		"ModelFails": TestModelFails, "CallerCancels": TestCallerCancels, "UserCancels": TestUserCancels, "Rewind": TestRewind, "Fork": TestFork,
		"Stale": TestStale, "BadValues": TestBadValues, "Erase": TestErase, "ConcurrentRuns": TestConcurrentRuns,
		"SharedStateIsRepaired": TestSharedStateIsRepaired, "SideBySide": TestSideBySide, "LongHistory": TestLongHistory,
	} {
		t.Run(name, test)
	}
}

// TestLongHistory: a session with more events than a page has is complete.
func TestLongHistory(t *testing.T) {
	k := newDesk(t, open(t, ""))
	const n = 600 // of at least two events each
	for i := range n {
		k.must(k.a, at(i, "bot", text(fmt.Sprint("text ", i))))
	}
	now := k.get().Events()
	check(t, "events", now.Len(), n)
	check(t, "the last one", now.At(n - 1).Content.Parts[0].Text, fmt.Sprint("text ", n-1))
	if now.At(n) != nil || now.At(-1) != nil {
		t.Error("there are events beyond the ends")
	}
}

// TestSuite runs the public suite of ADK for services of sessions, on both stores.
func TestSuite(t *testing.T) {
	for name, dir := range map[string]func(*testing.T) string{
		"memory": func(*testing.T) string { return "" },
		"sqlite": func(t *testing.T) string { return t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}, func(t *testing.T) session.Service {
				return serviceOn(t, open(t, dir(t)))
			})
		})
	}
}
