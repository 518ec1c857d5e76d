// Package search has the words of full-text search: the query, its results, and the
// batches that keep an index up to date. The worker that updates the index is in
// search/indexer; the index itself belongs to a store.
package search

import (
	"strings"
	"time"
	"unicode"

	"github.com/tapedeck/tapedeck"
)

// The kinds of a [Document].
const (
	DocMessage = "message" // what a user or an agent said, thinking included
	DocTool    = "tool"    // a tool call with its arguments, or what the tool answered
	DocTitle   = "title"   // of a session
)

// A Document is something finished that can be found by its words.
type Document struct {
	Offset     int64 // where it begins, among the session's own events
	Kind       string
	Role       string // of a message; [payload.RoleTool] of a tool's answer
	Thread     string
	Invocation string
	Time       time.Time
	Text       string
}

// A Search asks where something was said. Members that are zero ask for nothing.
type Query struct {
	Text    string          // see [Parse]
	Session string          // in this session only
	Kind    string          // of the documents
	Role    string          // likewise
	Status  tapedeck.Status // of the sessions
	Agent   string          // likewise
	Owner   string          // likewise
	From    time.Time       // said at or after
	To      time.Time       // said before
	Cursor  string          // from the answer before
	Limit   int             // 0 for 20, at most 100
}

// A Found is an answer to a [Query], what fits best first.
type Result struct {
	Hits   []Hit  `json:"hits"`
	Next   string `json:"next,omitempty"`   // cursor of the next page, "" if there is none
	Behind int    `json:"behind,omitempty"` // sessions whose newest events were not looked at
}

// A Hit is a document that was found.
type Hit struct {
	Session    string    `json:"session"`
	Title      string    `json:"title,omitempty"` // of the session
	Offset     int64     `json:"offset"`
	Thread     string    `json:"thread"`
	Invocation string    `json:"invocation,omitempty"`
	Kind       string    `json:"kind"`
	Role       string    `json:"role,omitempty"`
	Rewound    bool      `json:"rewound,omitempty"` // it is not in force any more
	Snippet    string    `json:"snippet"`           // plain text, what was found between « and »
	Time       time.Time `json:"timestamp"`
}

// A Term is a part of the text of a search.
type Term struct {
	Words  string // one word, or several that must follow each other
	Prefix bool   // the last word may go on
	Not    bool   // it must not be there
}

// Limits of the text of a search.
const (
	maxSearch = 1024
	maxTerms  = 32
)

// ParseSearch reads the text of a search: words, all of which must be there, in
// any order; "several words" that follow each other; a word* that may go on; a
// -word that must not be there. Any text can be read so: what has neither letter
// nor digit is passed over. It is [tapedeck.Invalid] if nothing is left to look for.
func Parse(text string) ([]Term, error) {
	if len(text) > maxSearch {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the search has %d bytes; at most %d are allowed", len(text), maxSearch)
	}
	var terms []Term
	positive := false
	for rest := strings.ToValidUTF8(text, " "); ; {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		if rest == "" {
			break
		}
		var t Term
		t, rest = nextTerm(rest)
		if !strings.ContainsFunc(t.Words, isWord) {
			continue
		}
		if terms = append(terms, t); len(terms) > maxTerms {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the search has more than %d words", maxTerms)
		}
		positive = positive || !t.Not
	}
	if !positive {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the search names no word to look for")
	}
	return terms, nil
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func nextTerm(s string) (t Term, rest string) {
	s, t.Not = strings.CutPrefix(s, "-")
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		t.Words, rest, _ = strings.Cut(quoted, `"`) // one that does not end goes to the end
	} else {
		end := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
		if end < 0 {
			end = len(s)
		}
		t.Words, rest = s[:end], s[end:]
		t.Words, t.Prefix = strings.CutSuffix(t.Words, "*")
	}
	if after, ok := strings.CutPrefix(rest, "*"); ok {
		t.Prefix, rest = true, after
	}
	return t, rest
}

// An Unindexed session has events that an index has not looked at.
type Pending struct {
	Session string
	Gen     int64
	From    int64 // where to go on
	Base    int64 // as it was given in [Batch]; 0 for a session that was not looked at
	Head    int64
}

// An Indexed says what an index is to know of a session: these documents and no
// others from an offset on.
type Batch struct {
	Session   string
	Gen       int64      // of the session that was read; if it has another one by now, nothing is done
	From      int64      // see [Pending]
	Base      int64      // the head when the first of its events was looked at
	Resume    int64      // where to go on; what began before and was not finished is looked at once more
	Seen      int64      // events below were looked at
	Documents []Document // of a title, only the newest of a session counts, and none if its text is empty
}
