package store

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// TestEntryDifferences changes one member at a time, and then all.
func TestEntryDifferences(t *testing.T) {
	at := time.Date(2026, 1, 5, 12, 34, 56, 789e6, time.UTC)
	entry := tapedeck.Session{
		Title: "A talk", Owner: "ada", Agent: "coder", Labels: map[string]string{"k": "v"}, Status: tapedeck.StatusCancelled, Resumable: new(true),
		Runs:   []tapedeck.OpenRun{{Invocation: "i", Thread: "main", Offset: 3, Started: at}},
		Inputs: []tapedeck.WaitingInput{{ID: "in_1", Thread: "main", Offset: 5}}, Waiting: []tapedeck.OpenQuestion{{ID: "per_1", Thread: "main"}}, LastJump: 7, Copy: true,
	}
	all := tapedeck.Session{Labels: map[string]string{}}
	for want, change := range map[string]func(*tapedeck.Session){
		`title is "A talk", but "" by the events`:                       func(s *tapedeck.Session) { s.Title = "" },
		`owner is "ada", but "eve" by the events`:                       func(s *tapedeck.Session) { s.Owner = "eve" },
		`agent is "coder", but "" by the events`:                        func(s *tapedeck.Session) { s.Agent = "" },
		`labels is {"k":"v"}, but {} by the events`:                     func(s *tapedeck.Session) { s.Labels = nil },
		`status is "cancelled", but "complete" by the events`:           func(s *tapedeck.Session) { s.Status = tapedeck.StatusComplete },
		`resumable is true, but null by the events`:                     func(s *tapedeck.Session) { s.Resumable = nil },
		`runs is [{"invocation":"i","thread":"main","offset":3,"sta`:    func(s *tapedeck.Session) { s.Runs = nil },
		`inputs is [{"id":"in_1","thread":"main","offset":5}], but`:     func(s *tapedeck.Session) { s.Inputs = nil },
		`waiting is [{"id":"per_1","thread":"main","invocation":"","of`: func(s *tapedeck.Session) { s.Waiting = nil },
		`last jump is 7, but 0 by the events`:                           func(s *tapedeck.Session) { s.LastJump = 0 },
		`copy is true, but false by the events`:                         func(s *tapedeck.Session) { s.Copy = false },
	} {
		fold := entry
		change(&fold)
		if got := EntryDifferences(&entry, &fold); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := EntryDifferences(&entry, &all); len(got) != 11 {
		t.Errorf("all members differ, but it names %q", got)
	}
}

// TestEntryDifferencesOfEqualEntries: a database has no empty lists, and a fold may.
func TestEntryDifferencesOfEqualEntries(t *testing.T) {
	a := tapedeck.Session{ID: "a", Closed: true, Head: 9, Updated: time.Now()}
	b := tapedeck.Session{Labels: map[string]string{}, Runs: []tapedeck.OpenRun{}, Inputs: []tapedeck.WaitingInput{}}
	if got := EntryDifferences(&a, &b); got != nil {
		t.Errorf("got %q", got)
	}
}

// TestEntryDifferencesAreShortAndSafe: titles and labels are what clients sent.
func TestEntryDifferencesAreShortAndSafe(t *testing.T) {
	long := strings.Repeat("ä", 10_000)
	a := tapedeck.Session{Title: long + "one\u202e\u009b31m", Owner: "x\x1b[2J\u2028"}
	b := tapedeck.Session{Title: long + "two" + long}
	got := EntryDifferences(&a, &b)
	if len(got) != 2 || !strings.Contains(got[0], `ääone`) || !strings.Contains(got[0], `äätwo`) {
		t.Fatalf("got %q", got)
	}
	for _, line := range got {
		if utf8.RuneCountInString(line) > 300 || slices.ContainsFunc([]rune(line), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("got %q", line)
		}
	}
}
