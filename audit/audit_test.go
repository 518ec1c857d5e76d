package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/audit"
)

func open(t *testing.T, dir string) *audit.Log {
	t.Helper()
	l := audit.Open(dir, audit.Options{})
	t.Cleanup(l.Close)
	return l
}

func add(t *testing.T, l *audit.Log, records ...api.AuditRecord) {
	t.Helper()
	for _, r := range records {
		if err := l.Add(r); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir string, q api.AuditQuery) api.AuditPage {
	t.Helper()
	page, err := audit.Read(dir, q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// sessions returns the ids of the sessions of a page, newest first.
func sessions(p api.AuditPage) string {
	var ids []string
	for _, r := range p.Records {
		ids = append(ids, r.Session)
	}
	return strings.Join(ids, " ")
}

func deletion(role, session string) api.AuditRecord {
	return api.AuditRecord{Action: audit.Delete, Outcome: audit.Allowed, Actor: "ada", Role: role, Session: session}
}

func TestRecordsAreReadNewestFirst(t *testing.T) {
	dir := t.TempDir()
	if p := read(t, dir, api.AuditQuery{}); len(p.Records) != 0 || p.Next != nil {
		t.Errorf("an empty folder has %v", p)
	}
	l := open(t, dir)
	if _, err := os.Stat(filepath.Join(dir, audit.Folder)); err == nil {
		t.Error("Open has created the folder, so a folder that can only be read could not be opened")
	}
	add(t, l, deletion("user", "a"), deletion("admin", "b"), api.AuditRecord{Action: audit.Export, Outcome: audit.Allowed, Actor: "bob", Role: "user", Session: "a"}, deletion("admin", "c"))
	first := read(t, dir, api.AuditQuery{Limit: 3})
	if got := sessions(first); got != "c a b" || first.Next == nil {
		t.Fatalf("the first page has %q, next %v", got, first.Next)
	}
	if second := read(t, dir, api.AuditQuery{Limit: 3, To: *first.Next}); sessions(second) != "a" || second.Next != nil {
		t.Errorf("the second page has %q, next %v", sessions(second), second.Next)
	}
	from := first.Records[1].Time
	for _, test := range []struct {
		q    api.AuditQuery
		want string
	}{
		{api.AuditQuery{Action: "session"}, "c a b a"}, {api.AuditQuery{Action: "session.delete"}, "c b a"}, {api.AuditQuery{Action: "session.del"}, ""},
		{api.AuditQuery{Actor: "bob"}, "a"}, {api.AuditQuery{Session: "a"}, "a a"}, {api.AuditQuery{Outcome: audit.Refused}, ""},
		{api.AuditQuery{From: from}, "c a"}, {api.AuditQuery{To: from}, "b a"},
	} {
		if got := sessions(read(t, dir, test.q)); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.q, got, test.want)
		}
	}
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, deletion("user", "a"), deletion("admin", "b"))
	l.Refuse(api.AuditRecord{Action: audit.Access})
	l.Close()
	names, err := os.ReadDir(filepath.Join(dir, audit.Folder))
	if err != nil || len(names) != 4 {
		t.Fatal(names, err)
	}
	for _, n := range names {
		if info, err := n.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %v, %v", n.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, audit.Folder)); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// TestTornLine has a line that a crash has cut off: the records before and after it are
// there, and the reader says that there is one that it cannot read.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, deletion("admin", "a"), deletion("admin", "torn"))
	l.Close()
	file := filepath.Join(dir, audit.Folder, "admin.jsonl")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b[:len(b)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	if p := read(t, dir, api.AuditQuery{}); sessions(p) != "a" || p.Unreadable != 1 {
		t.Errorf("got %q and %d unreadable lines", sessions(p), p.Unreadable)
	}
	add(t, open(t, dir), deletion("admin", "b"))
	if p := read(t, dir, api.AuditQuery{}); sessions(p) != "b a" || p.Unreadable != 1 {
		t.Errorf("got %q and %d unreadable lines", sessions(p), p.Unreadable)
	}
}

// TestNothingForgesALine has texts of an attacker in every field.
func TestNothingForgesALine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	evil := "x\n" + `{"time":"2020-01-01T00:00:00Z","action":"login","outcome":"allowed","actor":"root"}` + "\n\u2028\r\x1b[2J\xff"
	add(t, l, api.AuditRecord{Action: audit.Delete, Outcome: audit.Allowed, Actor: evil, Session: evil, Request: evil, Remote: evil, Reason: evil})
	p := read(t, dir, api.AuditQuery{})
	if len(p.Records) != 1 || p.Unreadable != 0 || p.Records[0].Actor == "root" {
		t.Errorf("got %+v", p)
	}
}

func TestNoTokensAndNoLongTexts(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	for _, secret := range []string{"td_abcdefghij", "tds_abc.def", "eyJhbGciOi.abc.def"} {
		add(t, l, api.AuditRecord{Action: audit.Delete, Outcome: audit.Allowed, Session: secret, Request: "id-" + secret, Actor: "atd_x " + secret})
	}
	add(t, l, api.AuditRecord{Action: audit.Delete, Outcome: audit.Allowed, Session: strings.Repeat("é", 10_000)})
	b, err := os.ReadFile(filepath.Join(dir, audit.Folder, "admin.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"abcdefghij", "tds_", "abc.def", "eyJ"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("the log has %q:\n%.2000s", secret, b)
		}
	}
	if !strings.Contains(string(b), "atd_x ") {
		t.Error("a text without a token was cut off")
	}
	if len(b) > 4<<10 {
		t.Errorf("four records have %d bytes", len(b))
	}
}

// TestLimit has more records than the log keeps. The newest are there, the files are not
// larger than their limit, and the records of admins stay.
func TestLimit(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, audit.Folder)
	l := open(t, dir)
	add(t, l, deletion("admin", "important"), deletion("user", "0"))
	for n := 1; n <= 12; n++ { // a file that is full, again and again
		if err := os.Truncate(filepath.Join(folder, "users.jsonl"), 32<<20); err != nil {
			t.Fatal(err)
		}
		add(t, l, deletion("user", fmt.Sprint(n)))
	}
	files, err := filepath.Glob(filepath.Join(folder, "users*.jsonl"))
	if err != nil || len(files) != 8 {
		t.Errorf("there are %v, %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > 32<<20 {
			t.Error(f, info.Size(), err)
		}
	}
	p := read(t, dir, api.AuditQuery{})
	if got := sessions(p); !strings.HasPrefix(got, "12 ") || !strings.HasSuffix(got, " important") || strings.Contains(got, " 1 ") {
		t.Errorf("the log has %q", got)
	}
}

// TestRefusalsAreBounded has many refusals of one sender and many senders with one each.
func TestRefusalsAreBounded(t *testing.T) {
	dir := t.TempDir()
	flush := make(chan time.Time)
	l := audit.Open(dir, audit.Options{Flush: flush})
	const many = 5000
	for n := range many {
		l.Refuse(api.AuditRecord{Action: audit.Access, Actor: "eve", Remote: "10.0.0.1", Session: fmt.Sprint(n)})
		l.Refuse(api.AuditRecord{Action: audit.Access, Remote: fmt.Sprintf("10.1.%d.%d", n/256, n%256)})
	}
	flush <- time.Time{}
	add(t, l, deletion("admin", "after")) // the flush is written before it
	flush <- time.Time{}                  // and so are the refusals that were written together with it
	p := read(t, dir, api.AuditQuery{Outcome: audit.Refused, Limit: 1000})
	if len(p.Records) > 600 {
		t.Errorf("%d refusals became %d records", 2*many, len(p.Records))
	}
	total, ofEve := int64(0), int64(0)
	for _, r := range p.Records {
		n := max(r.Count, 1)
		total += n
		if r.Actor == "eve" {
			ofEve += n
		}
	}
	if total != 2*many || ofEve != many {
		t.Errorf("the records count %d refusals, %d of eve", total, ofEve)
	}
	l.Refuse(api.AuditRecord{Action: audit.Access, Actor: "eve", Remote: "10.0.0.1", Session: "next minute"})
	l.Close()
	if p := read(t, dir, api.AuditQuery{Session: "next minute"}); len(p.Records) != 1 {
		t.Error("the first refusal of the next minute was not recorded")
	}
}

// TestUnwritable has a log that cannot be written: Add says so, keeps nothing, and works
// again afterwards.
func TestUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	l := open(t, dir)
	if err := l.Add(deletion("admin", "a")); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Fatalf("without the data folder: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the log has created the data folder")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	add(t, l, deletion("admin", "b"))
	if got := sessions(read(t, dir, api.AuditQuery{})); got != "b" {
		t.Errorf("the log has %q", got)
	}
	l.Close()
	if err := l.Add(deletion("admin", "c")); tapedeck.KindOf(err) != tapedeck.Unavailable {
		t.Errorf("after Close: %v", err)
	}
	l.Refuse(api.AuditRecord{}) // is dropped
}

// TestSeveralWriters has two logs in one folder, as of a server and a command.
func TestSeveralWriters(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	var group sync.WaitGroup
	for n := range 20 {
		for _, l := range []*audit.Log{a, b} {
			group.Go(func() {
				if err := l.Add(deletion("admin", fmt.Sprint(n))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	if p := read(t, dir, api.AuditQuery{}); len(p.Records) != 40 || p.Unreadable != 0 {
		t.Errorf("there are %d records and %d unreadable lines", len(p.Records), p.Unreadable)
	}
}

func TestFollow(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, deletion("user", "before"))
	f, err := audit.NewFollower(dir, api.AuditQuery{Action: audit.Delete})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	next := func() (got []string) {
		t.Helper()
		records, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			got = append(got, r.Session)
		}
		return got
	}
	if got := next(); got != nil {
		t.Errorf("at first it has %v", got)
	}
	add(t, l, deletion("user", "a"), deletion("admin", "b"), api.AuditRecord{Action: audit.Export, Outcome: audit.Allowed})
	if diff := cmp.Diff([]string{"a", "b"}, next()); diff != "" {
		t.Error(diff)
	}
	file := filepath.Join(dir, audit.Folder, "users.jsonl")
	add(t, l, deletion("user", "c"))
	half, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if _, err := half.WriteString(`{"time":"2026-01-01T00:00:00Z","action":"session.delete",`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c"}, next()); diff != "" {
		t.Error(diff)
	}
	if _, err := half.WriteString(`"session":"whole"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"whole"}, next()); diff != "" {
		t.Error(diff)
	}
	add(t, l, deletion("user", "d"))
	if err := os.Rename(file, filepath.Join(dir, audit.Folder, "users.1.jsonl")); err != nil {
		t.Fatal(err)
	}
	add(t, l, deletion("user", "e"))
	if diff := cmp.Diff([]string{"d", "e"}, next()); diff != "" {
		t.Error(diff)
	}
}
