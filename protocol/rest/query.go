package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A query reads the parameters of a request. The first one that is wrong is
// remembered; err says so when all have been read.
type query struct {
	values url.Values
	format string // of events, unless the request names one
	err    error
}

// parseQuery parses the query, in which only the named parameters may be: one
// that is misspelt would silently do nothing. The token is read by who decides
// on access.
func parseQuery(r *http.Request, names ...string) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values, format: "native"}
	if byTask(r) {
		q.format = "task"
	}
	if err != nil {
		q.fail("the query is malformed")
	}
	for name := range values {
		if name != "token" && !slices.Contains(names, name) {
			q.err = tapedeck.Errorf(tapedeck.Invalid, "there is no parameter %q here", name).
				WithHint("the parameters are %s", strings.Join(names, ", "))
			if len(names) == 0 {
				q.err = tapedeck.Errorf(tapedeck.Invalid, "there is no parameter %q here", name)
			}
		}
	}
	return q
}

func (q *query) fail(format string, args ...any) {
	if q.err == nil {
		q.err = tapedeck.Errorf(tapedeck.Invalid, format, args...)
	}
}

// string returns a parameter, "" if it is absent.
func (q *query) string(name string) string {
	v := q.values[name]
	switch len(v) {
	case 0:
		return ""
	case 1:
		return v[0]
	}
	q.fail("the parameter %s is given %d times", name, len(v))
	return ""
}

// offset returns a parameter that is a number from 0, def if it is absent.
func (q *query) offset(name string, def int64) int64 {
	s := q.string(name)
	if s == "" && !q.values.Has(name) {
		return def
	}
	n, ok := parseOffset(s)
	if !ok {
		q.fail("the parameter %s must be a whole number from 0, not %q", name, s)
	}
	return n
}

// from returns where to begin: fromOffset, which goes first, or from.
func (q *query) from() int64 { return q.offset("fromOffset", q.offset("from", 0)) }

func (q *query) hasFrom() bool { return q.values.Has("fromOffset") || q.values.Has("from") }

// parseOffset reads decimal digits: no sign, no space.
func parseOffset(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && s[0] != '+' && s[0] != '-'
}

// limit returns the parameter of that name, from 1 to most, def if it is absent.
func (q *query) limit(def, most int) int {
	s := q.string("limit")
	if !q.values.Has("limit") {
		return def
	}
	n, ok := parseOffset(s)
	if !ok || n < 1 || n > int64(most) {
		q.fail("the parameter limit must be a whole number from 1 to %d, not %q", most, s)
	}
	return int(n)
}

// flag returns a parameter that is true or false, false if it is absent.
func (q *query) flag(name string) bool {
	return q.one(name, "false", "true", "false") == "true"
}

// one returns a parameter that is one of values, def if it is absent.
func (q *query) one(name, def string, values ...string) string {
	s := q.string(name)
	switch {
	case s == "" && !q.values.Has(name):
		return def
	case !slices.Contains(values, s):
		q.fail("the parameter %s must be %s, not %q", name, strings.Join(values, " or "), s)
	}
	return s
}

// list returns a parameter that may be repeated and have values divided by
// commas. Each must pass check.
func (q *query) list(name string, check func(what, value string) error) []string {
	var all []string
	for _, v := range q.values[name] {
		all = append(all, strings.Split(v, ",")...)
	}
	for _, v := range all {
		if err := check("the parameter "+name, v); err != nil && q.err == nil {
			q.err = err
		}
	}
	return all
}

// time returns a parameter that is a time, or a day, which begins at midnight
// UTC; zero if it is absent.
func (q *query) time(name string) time.Time {
	s := q.string(name)
	if s == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	q.fail("the parameter %s must be a time such as 2026-01-05T12:34:56Z, or a day, not %q", name, s)
	return time.Time{}
}

// id returns a parameter that is an id, "" if it is absent.
func (q *query) id(name string) string {
	s := q.string(name)
	if s != "" && q.err == nil {
		q.err = tapedeck.CheckID("the parameter "+name, s)
	}
	return s
}
