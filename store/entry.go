package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/tapedeck/tapedeck"
)

// EntryDifferences names the members in which the entry that a catalogue has of a
// session differs from the fold of the session's own events, each with both values. It
// skips what no event sets, and the time of the newest event. The values are short, and
// safe to print.
func EntryDifferences(entry, fold *tapedeck.Session) []string {
	have, want := entryMembers(entry), entryMembers(fold)
	var out []string
	for i := range have {
		if h, w := have[i].value, want[i].value; h != w {
			h, w = aroundDifference([]rune(h), []rune(w))
			out = append(out, fmt.Sprintf("%s is %s, but %s by the events", have[i].name, h, w))
		}
	}
	if entry.Spent != nil && (fold.Spent == nil || isMore(entry.Spent.Amount, fold.Spent.Amount)) {
		out = append(out, fmt.Sprintf("spent is %s, but %s by the events", asJSON(entry.Spent), asJSON(fold.Spent)))
	}
	return out
}

// isMore reports whether an entry has spent more than its events say. It may have spent
// less: an entry that is older than its column counts from the migration on.
func isMore(entry, fold tapedeck.Amount) bool {
	const rounding = 1e-6
	return entry.Tokens > fold.Tokens || entry.USD > fold.USD+rounding || entry.Turns > fold.Turns || entry.Seconds > fold.Seconds+rounding
}

// An entryMember is a member of an entry that events set, as JSON.
type entryMember struct{ name, value string }

func entryMembers(s *tapedeck.Session) []entryMember {
	labels := s.Labels
	if labels == nil {
		labels = map[string]string{} // no labels are the same in both forms
	}
	return []entryMember{
		{"title", asJSON(s.Title)}, {"owner", asJSON(s.Owner)}, {"agent", asJSON(s.Agent)}, {"labels", asJSON(labels)},
		{"status", asJSON(s.Status)}, {"resumable", asJSON(s.Resumable)},
		{"runs", asJSON(append([]tapedeck.OpenRun{}, s.Runs...))}, {"inputs", asJSON(append([]tapedeck.WaitingInput{}, s.Inputs...))},
		{"waiting", asJSON(append([]tapedeck.OpenQuestion{}, s.Waiting...))},
		{"budget", asJSON(s.Budget)},
		{"last jump", asJSON(s.LastJump)}, {"copy", asJSON(s.Copy)},
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: the members are texts, numbers, booleans and times
	}
	return string(b)
}

// How much aroundDifference keeps of a value, and how much of that is before the
// difference, in characters.
const (
	shownOfValue = 120
	shownBefore  = 30
)

// aroundDifference returns the parts of two different values in which they differ first.
func aroundDifference(a, b []rune) (string, string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return shownFrom(a, at), shownFrom(b, at)
}

func shownFrom(r []rune, difference int) string {
	from, before, after := 0, "", ""
	if difference > shownOfValue-shownBefore {
		from, before = difference-shownBefore, "…"
	}
	if r = r[from:]; len(r) > shownOfValue {
		r, after = r[:shownOfValue], "…"
	}
	printable := func(c rune) rune {
		if !unicode.IsPrint(c) {
			return unicode.ReplacementChar
		}
		return c
	}
	return before + strings.Map(printable, string(r)) + after
}
