package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// An Index is what a store's index for searching must do.
type Index interface {
	Unindexed(ctx context.Context, limit int) ([]tapedeck.Unindexed, int, error)
	Index(ctx context.Context, in tapedeck.Indexed) error
	Search(ctx context.Context, q tapedeck.Search) (tapedeck.Found, error)
	Forget(ctx context.Context, session string) error
	Clean(ctx context.Context) error
}

// RunIndex runs the suite of an index. open returns a new and empty store with
// the index over it.
func RunIndex(t *testing.T, open func(testing.TB) (Store, Index)) {
	for name, test := range map[string]func(*testing.T, *library){
		"words": testWords, "filters": testFilters, "pages": testIndexPages, "what is behind": testBehind,
		"replacing": testReplacing, "what is gone": testGone, "hostile": testHostileSearch, "cancelled": testIndexCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			store, index := open(t)
			w := &world{t: t, ctx: t.Context(), Store: store, told: map[string]*told{}}
			test(t, &library{world: w, index: index, t: t})
		})
	}
}

// A library is a store with its index.
type library struct {
	*world
	t     *testing.T
	index Index
}

// put indexes texts as messages of a session, which is made if need be.
func (l *library) put(session string, texts ...string) {
	l.t.Helper()
	docs := make([]tapedeck.Document, len(texts))
	for i, text := range texts {
		docs[i] = tapedeck.Document{Offset: int64(i), Kind: tapedeck.DocMessage, Role: "user", Thread: "main", Text: text, Time: l.Clock.Now()}
	}
	l.hold(session, docs...)
}

func (l *library) hold(session string, docs ...tapedeck.Document) {
	l.t.Helper()
	s, err := l.Head(l.ctx, session)
	if err != nil {
		l.play(create(session, with(len(docs))))
		s = must(l.Head(l.ctx, session))(l.t)
	}
	if err := l.index.Index(l.ctx, tapedeck.Indexed{Session: session, Gen: s.Gen, Seen: s.Head, Resume: s.Head, Documents: docs}); err != nil {
		l.t.Fatal(err)
	}
}

// find returns where something is found, sorted.
func (l *library) find(q tapedeck.Search) []string {
	l.t.Helper()
	q.Limit = 100
	var out []string
	for _, h := range must(l.index.Search(l.ctx, q))(l.t).Hits {
		out = append(out, fmt.Sprint(h.Session, "/", h.Offset))
	}
	slices.Sort(out)
	return out
}

func (l *library) finds(q tapedeck.Search, want ...string) {
	l.t.Helper()
	if d := cmp.Diff(want, l.find(q)); d != "" && len(want)+len(l.find(q)) > 0 {
		l.t.Errorf("searching for %+v: %s", q, d)
	}
}

func testWords(t *testing.T, l *library) {
	l.put("a", "The quick brown fox", "jumps over the lazy dog", "quick thinking; QUICK, quicker", "Über naïve Füchse", `{"path":"src/login_form.go"}`)
	for text, want := range map[string][]string{
		"quick": {"a/0", "a/2"}, "QUICK": {"a/0", "a/2"}, "quick fox": {"a/0"}, "fox quick": {"a/0"}, `"quick fox"`: nil, `"brown fox"`: {"a/0"},
		"quick*": {"a/0", "a/2"}, "qui*": {"a/0", "a/2"}, "qui": nil, "the -lazy": {"a/0"}, `the -"lazy dog"`: {"a/0"}, "the -fo*": {"a/1"},
		"füchse": {"a/3"}, "login": {"a/4"}, "src": {"a/4"}, "nothing": nil, `"the lazy do"*`: {"a/1"}, "fox AND dog": nil, "jumps OR fox": nil,
		"dog: over!": {"a/1"},
	} {
		l.finds(tapedeck.Search{Text: text}, want...)
	}
	h := must(l.index.Search(l.ctx, tapedeck.Search{Text: "brown", Limit: 1}))(t).Hits[0]
	want := tapedeck.Hit{Session: "a", Kind: tapedeck.DocMessage, Role: "user", Thread: "main", Snippet: "The quick «brown» fox", Time: l.Clock.Now()}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	l.put("long", strings.Repeat("word ", 200)+"needle "+strings.Repeat("word ", 200))
	h = must(l.index.Search(l.ctx, tapedeck.Search{Text: "needle"}))(t).Hits[0]
	if len(h.Snippet) > 200 || !strings.Contains(h.Snippet, "«needle»") || !strings.HasPrefix(h.Snippet, "…") || !strings.HasSuffix(h.Snippet, "…") {
		t.Errorf("the snippet is %q", h.Snippet)
	}
}

func testFilters(t *testing.T, l *library) {
	l.play(born("a", "Alpha", "ada", "coder"), born("b", "Beta", "bob", "writer"), runs("b", "RUN_STARTED", "i"))
	now := l.Clock.Now()
	doc := func(offset int64, kind, role string, ago time.Duration) tapedeck.Document {
		return tapedeck.Document{Offset: offset, Kind: kind, Role: role, Thread: "main", Text: "word", Time: now.Add(-ago)}
	}
	l.hold("a", doc(0, tapedeck.DocTitle, "", time.Hour), doc(1, tapedeck.DocMessage, "user", time.Hour), doc(2, tapedeck.DocTool, "tool", 0))
	l.hold("b", doc(0, tapedeck.DocMessage, "assistant", 0))
	for _, c := range []struct {
		q    tapedeck.Search
		want []string
	}{
		{tapedeck.Search{}, []string{"a/0", "a/1", "a/2", "b/0"}},
		{tapedeck.Search{Session: "a"}, []string{"a/0", "a/1", "a/2"}},
		{tapedeck.Search{Session: "nobody"}, nil},
		{tapedeck.Search{Kind: "title"}, []string{"a/0"}},
		{tapedeck.Search{Kind: "message"}, []string{"a/1", "b/0"}},
		{tapedeck.Search{Role: "tool"}, []string{"a/2"}},
		{tapedeck.Search{Owner: "bob"}, []string{"b/0"}},
		{tapedeck.Search{Agent: "coder", Kind: "tool"}, []string{"a/2"}},
		{tapedeck.Search{Status: tapedeck.StatusRunning}, []string{"b/0"}},
		{tapedeck.Search{From: now}, []string{"a/2", "b/0"}},
		{tapedeck.Search{From: now.Add(-time.Hour), To: now}, []string{"a/0", "a/1"}},
		{tapedeck.Search{To: now.Add(-time.Hour)}, nil},
	} {
		c.q.Text = "word"
		l.finds(c.q, c.want...)
	}
	if h := must(l.index.Search(l.ctx, tapedeck.Search{Text: "word", Session: "b"}))(t).Hits[0]; h.Title != "Beta" {
		t.Errorf("the title is %q", h.Title)
	}
}

func testIndexPages(t *testing.T, l *library) {
	for i := range 25 {
		l.put(fmt.Sprint("s", i), "word")
		l.Clock.Advance(time.Second)
	}
	q := tapedeck.Search{Text: "word", Limit: 10}
	var got []string
	for range 4 {
		f := must(l.index.Search(l.ctx, q))(t)
		for _, h := range f.Hits {
			got = append(got, h.Session)
		}
		if q.Cursor = f.Next; q.Cursor == "" {
			break
		}
	}
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprint("s", 24-i)) // all fit alike
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, cursor := range []string{"x", "-1", "1e3", "99999999999999999999"} {
		if _, err := l.index.Search(l.ctx, tapedeck.Search{Text: "word", Cursor: cursor}); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// testBehind: what has not been looked at is told, the newest first, until it
// was; streams never.
func testBehind(t *testing.T, l *library) {
	l.play(create("a", with(3)), create("stream/a", with(2)), create("b", from("a", 2), with(2)))
	unindexed := func(want ...tapedeck.Unindexed) {
		t.Helper()
		got, n, err := l.index.Unindexed(l.ctx, 10)
		for i := range got {
			got[i].Gen = 0
		}
		if d := cmp.Diff(want, got); d != "" && n > 0 || n != len(want) || err != nil {
			t.Errorf("%d, %v, %s", n, err, d)
		}
	}
	unindexed(tapedeck.Unindexed{Session: "b", From: 2, Head: 4}, tapedeck.Unindexed{Session: "a", Head: 3})
	if got, n, err := l.index.Unindexed(l.ctx, 1); len(got) != 1 || n != 2 || err != nil {
		t.Errorf("one of them: %v, %d, %v", got, n, err)
	}
	gen := must(l.Head(l.ctx, "a"))(t).Gen
	for _, in := range []tapedeck.Indexed{
		{Session: "a", Gen: gen, Seen: 3, Resume: 1, Base: 3}, {Session: "b", Gen: gen, Seen: 4}, {Session: "nobody", Gen: 99, Seen: 1},
	} {
		if err := l.index.Index(l.ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	unindexed(tapedeck.Unindexed{Session: "b", From: 2, Head: 4})
	l.play(write("a", 1))
	unindexed(tapedeck.Unindexed{Session: "b", From: 2, Head: 4}, tapedeck.Unindexed{Session: "a", From: 1, Base: 3, Head: 4})
}

// testReplacing: what is indexed again takes the place of what was.
func testReplacing(t *testing.T, l *library) {
	l.put("a", "one", "two", "three")
	gen := must(l.Head(l.ctx, "a"))(t).Gen
	title := func(offset int64, text string) tapedeck.Document {
		return tapedeck.Document{Offset: offset, Kind: tapedeck.DocTitle, Text: text}
	}
	put := func(from int64, docs ...tapedeck.Document) {
		t.Helper()
		if err := l.index.Index(l.ctx, tapedeck.Indexed{Session: "a", Gen: gen, From: from, Seen: 3, Resume: 3, Documents: docs}); err != nil {
			t.Fatal(err)
		}
	}
	put(1, tapedeck.Document{Offset: 1, Kind: tapedeck.DocMessage, Text: "deux"}, title(2, "first title"))
	l.finds(tapedeck.Search{Text: "one"}, "a/0")
	l.finds(tapedeck.Search{Text: "two"})
	l.finds(tapedeck.Search{Text: "three"})
	l.finds(tapedeck.Search{Text: "deux"}, "a/1")
	put(3, title(4, "second title"))
	l.finds(tapedeck.Search{Text: "title"}, "a/4")
	l.finds(tapedeck.Search{Text: "first"})
	put(5, title(5, ""))
	l.finds(tapedeck.Search{Text: "title"})
}

// testGone: nothing is found in a session that was deleted, has expired, or was
// forgotten; a new one under its id has nothing of it.
func testGone(t *testing.T, l *library) {
	l.put("a", "word")
	l.put("b", "word")
	l.play(create("fork", from("b", 1)), create("mortal", living(time.Minute)))
	l.put("mortal", "word")
	l.finds(tapedeck.Search{Text: "word"}, "a/0", "b/0", "mortal/0")
	l.play(remove("a"), removeSoftly("b"))
	l.finds(tapedeck.Search{Text: "word"}, "mortal/0")
	l.Clock.Advance(time.Hour)
	l.finds(tapedeck.Search{Text: "word"})
	l.play(create("a", with(1)))
	l.finds(tapedeck.Search{Text: "word"})
	if _, _, err := l.index.Unindexed(l.ctx, 10); err != nil {
		t.Fatal(err)
	}
	l.put("a", "word")
	if err := l.index.Forget(l.ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := l.index.Clean(l.ctx); err != nil {
		t.Fatal(err)
	}
	l.finds(tapedeck.Search{Text: "word"})
	if got, _, err := l.index.Unindexed(l.ctx, 10); err != nil || !slices.ContainsFunc(got, func(u tapedeck.Unindexed) bool { return u.Session == "a" && u.From == 0 }) {
		t.Errorf("it is not looked at anew: %v, %v", got, err)
	}
	if err := l.Delete(l.ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "none"} {
		if err := l.index.Forget(l.ctx, id); err != nil {
			t.Errorf("to forget %s, which is not there: %v", id, err)
		}
	}
}

// testHostileSearch: no text is an error but one that asks for nothing.
func testHostileSearch(t *testing.T, l *library) {
	l.put("a", `NEAR("a" OR text:x) AND {b} ^c + d - e " ' ; DROP TABLE docs -- \ % _ ( [ NULL word`)
	for _, text := range []string{
		`NEAR(a b)`, `NEAR(`, `a NEAR/3 b`, `text:word`, `docs.text:word`, `{text}:word`, `^word`, `wo*rd`, `word**`, `"word" *`, `(word`, `word)`,
		`word AND`, `OR word`, `NOT word`, `word + word`, `word"`, `"word`, `wo"rd`, `"wo""rd"`, `'; DROP TABLE docs; --`, `word\`, `word%`, "word\x00more", "word\x00\"more",
		"wo\nrd", `-word a`, `word -"`, `word -`, "word \xff", `[word]`, `word:`, `:word`, `word,word`, `- - -word x`, `word*-a`, `«word»`, `text : word`, `-text:word x`,
	} {
		if _, err := l.index.Search(l.ctx, tapedeck.Search{Text: text}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{``, ` `, `-`, `*`, `"`, `""`, `-word`, `()`, strings.Repeat("a ", 100)} {
		if _, err := l.index.Search(l.ctx, tapedeck.Search{Text: text}); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	l.finds(tapedeck.Search{Text: "word", Session: `a' OR '1'='1`})
	l.finds(tapedeck.Search{Text: "word"}, "a/0")
}

func testIndexCancelled(t *testing.T, l *library) {
	l.put("a", "word")
	ctx, cancel := context.WithCancel(l.ctx)
	cancel()
	_, _, uerr := l.index.Unindexed(ctx, 1)
	_, serr := l.index.Search(ctx, tapedeck.Search{Text: "word"})
	ierr := l.index.Index(ctx, tapedeck.Indexed{Session: "a"})
	for call, err := range map[string]error{"unindexed": uerr, "search": serr, "index": ierr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
}
