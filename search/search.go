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
	DocMessage = "message" // a message of a user or an agent, or its thinking
	DocTool    = "tool"    // a tool call with its arguments, or its result
	DocTitle   = "title"   // the title of a session
)

// A Document is a complete text that a search can find, such as a message.
type Document struct {
	Offset     int64 // offset of its first event, which is the session's own, not inherited
	Kind       string
	Role       string // the role of a message; payload.RoleTool for the result of a tool
	Thread     string
	Invocation string
	Time       time.Time
	Text       string
}

// A Query describes a search. Zero members do not restrict it.
type Query struct {
	Text    string          // see [Parse]
	Session string          // search only this session
	Kind    string          // search only documents of this kind, such as [DocTool]
	Role    string          // search only documents of this role
	Status  tapedeck.Status // search only sessions with this status
	Agent   string          // search only sessions of this agent
	Owner   string          // search only sessions of this owner
	From    time.Time       // search only documents of this time or later
	To      time.Time       // search only documents before this time
	Cursor  string          // the cursor from the previous result
	Limit   int             // 0 for 20, at most 100
}

// A Result is the answer to a search, the best matches first.
type Result struct {
	Hits   []Hit  `json:"hits"`
	Next   string `json:"next,omitempty"`   // cursor of the next page, "" if there is none
	Behind int    `json:"behind,omitempty"` // number of sessions with events that are not indexed yet
}

// A Ranked is a hit of one of several indexes, whose hits are joined.
type Ranked struct {
	Hit
	Rank float64 // the higher, the better it matches; of equal ones the newer comes first
	Skip int     // the number of hits in its index before the next one
}

// A Hit is a document that matches.
type Hit struct {
	Session    string    `json:"session"`
	Title      string    `json:"title,omitempty"` // the title of the session
	Offset     int64     `json:"offset"`
	Thread     string    `json:"thread"`
	Invocation string    `json:"invocation,omitempty"`
	Kind       string    `json:"kind"`
	Role       string    `json:"role,omitempty"`
	Rewound    bool      `json:"rewound,omitempty"` // it was reverted
	Snippet    string    `json:"snippet"`           // plain text, with the match between « and »
	Time       time.Time `json:"timestamp"`
}

// A Term is a part of the text of a search.
type Term struct {
	Words  []string // one [Word], or several that must follow each other
	Prefix bool     // the last word is the beginning of a word
	Not    bool     // the words must not occur
}

// Limits of the text of a search.
const (
	maxSearch = 1024 // bytes
	maxTerms  = 32
)

// Parse parses the text of a search. All words must occur, in any order. Words
// between quotes must follow each other, word* matches words that begin with it, and
// -word must not occur. Any text is valid: parts without a word are skipped. If no word
// is left to search for, the error is [tapedeck.Invalid].
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
		if t, rest = nextTerm(rest); len(t.Words) == 0 {
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

func nextTerm(s string) (t Term, rest string) {
	var part string
	s, t.Not = strings.CutPrefix(s, "-")
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		part, rest, _ = strings.Cut(quoted, `"`) // without a closing quote it is the rest
	} else {
		end := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
		if end < 0 {
			end = len(s)
		}
		part, rest = s[:end], s[end:]
		part, t.Prefix = strings.CutSuffix(part, "*")
	}
	if after, ok := strings.CutPrefix(rest, "*"); ok {
		t.Prefix, rest = true, after
	}
	t.Words, t.Prefix = phrase(part, t.Prefix)
	return t, rest
}

// A Pending session has events that are not indexed.
type Pending struct {
	Session string
	Gen     int64
	From    int64 // offset of the first event to read
	Base    int64 // Base of the last [Batch]; 0 for a session that is not in the index
	Head    int64
}

// A Batch has the documents of a session from an offset on. They replace those that
// the index has from that offset on.
type Batch struct {
	Session   string
	Gen       int64      // the Gen of the session that was read; if the session was recreated since then, the index ignores the batch
	From      int64      // see [Pending]
	Base      int64      // the head when the indexing of the session began
	Resume    int64      // the offset to continue from: that of the first document that is not complete, which is read again
	Seen      int64      // all events below this offset were read
	Documents []Document // a title replaces older ones of the session; an empty one removes them
}
