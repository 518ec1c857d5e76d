package store

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// The orders of [tapedeck.Filter]. Sessions with the same place have the order of their
// creation.
const (
	SortCreated  = ""         // when the sessions were created
	SortActivity = "activity" // sessions that wait for a person, then those with an open run, then the others; each by when they were last active
	SortTitle    = "title"    // the title, or the id if there is none, in lower case, by the bytes of UTF-8
	SortTokens   = "tokens"   // Totals.Tokens
	SortCost     = "cost"     // Totals.CostMicros
	SortDuration = "duration" // Totals.RecordingMS
	SortFailures = "failures" // Totals.Failures
)

// A Place is the place of a session in a sorted list. It is the cursor of the page that
// begins after it, so a page does not depend on how many sessions come before it.
type Place struct {
	Number int64  // by which the list is sorted; 0 with a text
	Text   string // of [SortTitle]
	Gen    int64  // decides if the others are the same
}

// Compare returns which place comes first if a list is ascending.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Number, q.Number), cmp.Compare(p.Text, q.Text), cmp.Compare(p.Gen, q.Gen))
}

// PlaceOf returns the place of a session in a sorted list.
func PlaceOf(s *tapedeck.Session, by string) Place {
	p := Place{Gen: s.Gen}
	switch by {
	case SortActivity:
		p.Number = activity(s)
	case SortTitle:
		p.Text = TitleKey(s)
	case SortTokens:
		p.Number = s.Totals.Tokens
	case SortCost:
		p.Number = s.Totals.CostMicros
	case SortDuration:
		p.Number = s.Totals.RecordingMS
	case SortFailures:
		p.Number = s.Totals.Failures
	}
	return p
}

// classStep is more than the milliseconds between the years 0 and 9999, so no time
// reaches the next class.
const classStep = 1 << 50

// activity returns one number of the class of a session and of when it was last active.
func activity(s *tapedeck.Session) int64 {
	class := int64(0)
	switch {
	case len(s.Waiting) > 0:
		class = 2
	case len(s.Runs) > 0:
		class = 1
	}
	return class*classStep + lastActive(s).UnixMilli()
}

// lastActive returns when a session was last active, or when it was created if no event of
// a conversation has come yet.
func lastActive(s *tapedeck.Session) time.Time {
	if s.Active.IsZero() {
		return s.Created
	}
	return s.Active
}

// maxTitleKey limits what is compared of a title, in bytes: an index of PostgreSQL does
// not hold long texts.
const maxTitleKey = 256

// TitleKey returns the text by which a session is sorted.
func TitleKey(s *tapedeck.Session) string {
	key := strings.ToLower(strings.ToValidUTF8(cmp.Or(strings.TrimSpace(s.Title), s.ID), ""))
	key = strings.NewReplacer("\x00", "", "\x1a", "").Replace(key) // PostgreSQL stores them in another form
	if len(key) <= maxTitleKey {
		return key
	}
	at := maxTitleKey
	for !utf8.RuneStart(key[at]) {
		at--
	}
	return key[:at]
}

// SameTotals reports whether a and b are stored in the same way.
func SameTotals(a, b *tapedeck.Totals) bool {
	return a.At == b.At && a.Tokens == b.Tokens && a.CostMicros == b.CostMicros && a.RecordingMS == b.RecordingMS &&
		a.Failures == b.Failures && bytes.Equal(a.Row, b.Row) && (a.Row == nil) == (b.Row == nil)
}

// sortColumns are the columns of the table sessions that have the places.
var sortColumns = map[string]string{
	SortActivity: "activity", SortTitle: "title_key", SortTokens: "tokens", SortCost: "cost",
	SortDuration: "duration", SortFailures: "failures",
}

// SortColumn returns the name of the column by which a list is sorted. Its index has the
// same name after "sessions_by_".
func SortColumn(by string) string { return sortColumns[by] }

// CheckFilter returns an error, [tapedeck.Invalid], if a list cannot be sorted as asked.
func CheckFilter(f *tapedeck.Filter) error {
	switch {
	case f.Sort == SortCreated:
	case sortColumns[f.Sort] == "":
		return tapedeck.Errorf(tapedeck.Invalid, "lists are not sorted by %.80q", f.Sort)
	case f.Kind != "" && f.Kind != tapedeck.KindSession:
		return tapedeck.Errorf(tapedeck.Invalid, "only lists of sessions are sorted")
	}
	return nil
}

// cursorName begins the cursors of one order, so that none is used with another.
func cursorName(f *tapedeck.Filter) string {
	if f.Ascending {
		return f.Sort + "-up"
	}
	return f.Sort
}

// FormatCursor returns the cursor of the page after a place.
func FormatCursor(f *tapedeck.Filter, p Place) string {
	key := strconv.FormatInt(p.Number, 10)
	switch f.Sort {
	case SortCreated:
		return strconv.FormatInt(p.Gen, 10)
	case SortTitle:
		key = base64.RawURLEncoding.EncodeToString([]byte(p.Text))
	}
	return fmt.Sprintf("%s.%s.%d", cursorName(f), key, p.Gen)
}

// ParseCursor returns the place after which a list begins. It reports false if the filter
// has no cursor.
func ParseCursor(f *tapedeck.Filter) (p Place, has bool, err error) {
	if f.Cursor == "" {
		return p, false, nil
	}
	bad := tapedeck.Errorf(tapedeck.Invalid, "the cursor %.400q is not one of ours, or of a list in another order", f.Cursor)
	name, key, gen := "", "", f.Cursor
	if f.Sort != SortCreated {
		var ok1, ok2 bool
		name, key, ok1 = strings.Cut(f.Cursor, ".")
		key, gen, ok2 = strings.Cut(key, ".")
		if !ok1 || !ok2 || name != cursorName(f) {
			return p, false, bad
		}
	}
	n, err := strconv.ParseUint(gen, 10, 63)
	if err != nil {
		return p, false, bad
	}
	p.Gen = int64(n)
	switch f.Sort {
	case SortCreated:
	case SortTitle:
		text, err := base64.RawURLEncoding.DecodeString(key)
		if err != nil || len(text) > maxTitleKey || !utf8.Valid(text) || strings.ContainsRune(string(text), 0) {
			return p, false, bad
		}
		p.Text = string(text)
	default:
		if p.Number, err = strconv.ParseInt(key, 10, 64); err != nil {
			return p, false, bad
		}
	}
	return p, true, nil
}
