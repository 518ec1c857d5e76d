package bpmn

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A Schedule says when a timer event is due.
type Schedule struct {
	First  time.Time // the first time
	Every  Period    // the time between two times; zero if there is only one
	Repeat int       // how often it is due, at least 1; -1: without end
}

// Next returns the time after n times, n from 0, and whether there is one.
func (s Schedule) Next(n int) (time.Time, bool) {
	if n < 0 || s.Repeat >= 0 && n >= s.Repeat {
		return time.Time{}, false
	}
	return s.Every.add(s.First, n), true
}

// A Period is a duration of ISO 8601. Months and days depend on the calendar.
type Period struct {
	Months, Days int
	Time         time.Duration
}

// add adds n periods to t.
func (p Period) add(t time.Time, n int) time.Time {
	return t.AddDate(0, p.Months*n, p.Days*n).Add(p.Time * time.Duration(n))
}

// Schedule returns when a timer that starts now is due. A date in the past is due at
// once. Errors are of kind [tapedeck.Invalid].
func (t *Timer) Schedule(ctx context.Context, variables map[string]any, now time.Time) (Schedule, error) {
	text, err := t.Value.Render(ctx, variables)
	if err != nil {
		return Schedule{}, err
	}
	return parseTimer(t.Kind, strings.TrimSpace(text), now)
}

func checkTimer(kind TimerKind, text string) error {
	_, err := parseTimer(kind, text, time.Unix(0, 0).UTC())
	return err
}

func parseTimer(kind TimerKind, text string, now time.Time) (Schedule, error) {
	switch kind {
	case Date:
		at, err := parseDate(text)
		return Schedule{First: at, Repeat: 1}, err
	case Duration:
		p, err := parsePeriod(text)
		return Schedule{First: p.add(now, 1), Repeat: 1}, err
	}
	return parseCycle(text, now)
}

var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"}

// parseDate reads a date. Without a zone it is in UTC, because a server that moves must
// not change when something is due. A zone in brackets, as Camunda 8 writes it, counts.
func parseDate(text string) (time.Time, error) {
	zone := time.UTC
	if i := strings.IndexByte(text, '['); i > 0 && strings.HasSuffix(text, "]") {
		var err error
		if zone, err = time.LoadLocation(text[i+1 : len(text)-1]); err != nil || text[i+1:len(text)-1] == "Local" {
			return time.Time{}, tapedeck.Errorf(tapedeck.Invalid, "%.60q is not a time zone", text[i+1:len(text)-1])
		}
		text = text[:i]
	}
	for _, layout := range dateLayouts {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, tapedeck.Errorf(tapedeck.Invalid, "%.60q is not a date of ISO 8601", text).WithHint("write it as in 2026-12-24T18:00:00Z")
}

var periodPattern = regexp.MustCompile(`^P(?:(\d{1,4})Y)?(?:(\d{1,5})M)?(?:(\d{1,5})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,8})M)?(?:(\d{1,9})(?:[.,](\d{1,9}))?S)?)?$`)

func parsePeriod(text string) (Period, error) {
	m := periodPattern.FindStringSubmatch(text)
	if m == nil || text == "P" || strings.HasSuffix(text, "T") {
		return Period{}, tapedeck.Errorf(tapedeck.Invalid, "%.60q is not a duration of ISO 8601", text).WithHint("write it as in PT15M, PT1H30M, P2D or PT0.5S")
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(m[i])
		return v
	}
	fraction, _ := strconv.Atoi((m[8] + "000000000")[:9])
	return Period{
		Months: 12*n(1) + n(2), Days: 7*n(3) + n(4),
		Time: time.Duration(n(5))*time.Hour + time.Duration(n(6))*time.Minute + time.Duration(n(7))*time.Second + time.Duration(fraction),
	}, nil
}

// minPeriod keeps a cycle from filling the log.
const minPeriod = time.Second

// parseCycle reads a repetition: R, R3, R3/PT10S, R/2026-12-24T18:00:00Z/PT1H. The
// first time is one period from now, or the date.
func parseCycle(text string, now time.Time) (Schedule, error) {
	parts := strings.Split(text, "/")
	wrong := tapedeck.Errorf(tapedeck.Invalid, "%.60q is not a cycle of ISO 8601", text).WithHint("write it as in R3/PT10S, or R/PT1H for one without an end; cron expressions are not supported")
	if len(parts) < 2 || len(parts) > 3 || !strings.HasPrefix(parts[0], "R") {
		return Schedule{}, wrong
	}
	s := Schedule{Repeat: -1}
	if parts[0] != "R" {
		n, err := strconv.Atoi(parts[0][1:])
		if err != nil || n < 1 || n > 1_000_000 {
			return Schedule{}, wrong
		}
		s.Repeat = n
	}
	var err error
	if s.Every, err = parsePeriod(parts[len(parts)-1]); err != nil {
		return Schedule{}, err
	}
	if s.Every.add(now, 1).Sub(now) < minPeriod {
		return Schedule{}, tapedeck.Errorf(tapedeck.Invalid, "the cycle %q repeats more than once a second", text)
	}
	s.First = s.Every.add(now, 1)
	if len(parts) == 3 {
		s.First, err = parseDate(parts[1])
	}
	return s, err
}
