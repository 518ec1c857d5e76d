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
	"github.com/tapedeck/tapedeck/search"
)

// An Index is the search index of a store.
type Index interface {
	Unindexed(ctx context.Context, limit int) ([]search.Pending, int, error)
	Index(ctx context.Context, in search.Batch) error
	Search(ctx context.Context, q search.Query) (search.Result, error)
	Forget(ctx context.Context, session string) error
	Clean(ctx context.Context) error
}

// RunIndex runs the suite of an index. open returns a new and empty store with its
// index.
func RunIndex(t *testing.T, open func(testing.TB) (Store, Index)) {
	for name, test := range map[string]func(*testing.T, *library){
		"words": testWords, "languages": testLanguages, "filters": testFilters, "pages": testIndexPages, "what is behind": testBehind,
		"replacing": testReplacing, "deleted sessions": testGone, "hostile": testHostileSearch, "cancelled": testIndexCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			store, index := open(t)
			w := &world{t: t, ctx: t.Context(), Store: store, expected: map[string]*expected{}}
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

// put indexes texts as messages of a session, and creates the session if necessary.
func (l *library) put(session string, texts ...string) {
	l.t.Helper()
	docs := make([]search.Document, len(texts))
	for i, text := range texts {
		docs[i] = search.Document{Offset: int64(i), Kind: search.DocMessage, Role: "user", Thread: "main", Text: text, Time: l.Clock.Now()}
	}
	l.hold(session, docs...)
}

func (l *library) hold(session string, docs ...search.Document) {
	l.t.Helper()
	s, err := l.Head(l.ctx, session)
	if err != nil {
		l.play(create(session, with(len(docs))))
		s = must(l.Head(l.ctx, session))(l.t)
	}
	if err := l.index.Index(l.ctx, search.Batch{Session: session, Gen: s.Gen, Seen: s.Head, Resume: s.Head, Documents: docs}); err != nil {
		l.t.Fatal(err)
	}
}

// find returns the places of the hits, sorted.
func (l *library) find(q search.Query) []string {
	l.t.Helper()
	q.Limit = 100
	var out []string
	for _, h := range must(l.index.Search(l.ctx, q))(l.t).Hits {
		out = append(out, fmt.Sprint(h.Session, "/", h.Offset))
	}
	slices.Sort(out)
	return out
}

func (l *library) finds(q search.Query, want ...string) {
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
		l.finds(search.Query{Text: text}, want...)
	}
	h := must(l.index.Search(l.ctx, search.Query{Text: "brown", Limit: 1}))(t).Hits[0]
	want := search.Hit{Session: "a", Kind: search.DocMessage, Role: "user", Thread: "main", Snippet: "The quick «brown» fox", Time: l.Clock.Now()}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	l.put("long", strings.Repeat("word ", 200)+"needle "+strings.Repeat("word ", 200))
	h = must(l.index.Search(l.ctx, search.Query{Text: "needle"}))(t).Hits[0]
	if len(h.Snippet) > 200 || !strings.Contains(h.Snippet, "«needle»") || !strings.HasPrefix(h.Snippet, "…") || !strings.HasSuffix(h.Snippet, "…") {
		t.Errorf("the snippet is %q", h.Snippet)
	}
}

// testLanguages: what people write in other languages than English is found, too, by its
// parts if its words have no spaces between them.
func testLanguages(t *testing.T, l *library) {
	l.put("a", "我喜欢自行车和火车", "東京都に行きました", "ภาษาไทยง่ายมาก", "학교에서 공부했습니다", "使用Tapedeck服务器", "die Straße, ＦＵＬＬ ｶﾞ", "ΣΊΣΥΦΟΣ مُحَمَّد")
	for text, want := range map[string][]string{
		"自行车": {"a/0"}, "行车": {"a/0"}, "车": {"a/0"}, "器": {"a/4"}, "自行 火车": {"a/0"}, "自行火车": nil, "火车 -东京": {"a/0"}, "火车 -喜欢": nil,
		"東京": {"a/1"}, "行きまし": {"a/1"}, "ไทย": {"a/2"}, "ง่าย": {"a/2"}, "공부": {"a/3"}, "학교": {"a/3"}, `"학교에서 공부"`: {"a/3"}, `"학교 공부"`: nil,
		"tapedeck": {"a/4"}, "Tapedeck服务": {"a/4"}, "使用tapedeck": {"a/4"}, "使Tapedeck": nil, "服务*": {"a/4"},
		"strasse": {"a/5"}, "STRASSE": {"a/5"}, "straße": {"a/5"}, "stra*": {"a/5"}, "full": {"a/5"}, "ガ": {"a/5"}, "カ": nil, "σίσυφος": {"a/6"}, "محمد": {"a/6"},
	} {
		l.finds(search.Query{Text: text}, want...)
	}
	l.put("long", strings.Repeat("很长", 10_000)+"自行车")
	l.finds(search.Query{Text: "自行车", Session: "long"}, "long/0")
	l.finds(search.Query{Text: "自行车和", Session: "long"})
	l.put("gone", "火星")
	if err := l.index.Forget(l.ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	if err := l.index.Clean(l.ctx); err != nil {
		t.Fatal(err)
	}
	l.finds(search.Query{Text: "火星"})
	l.finds(search.Query{Text: "火车"}, "a/0")
}

func testFilters(t *testing.T, l *library) {
	l.play(createdWith("a", "Alpha", "ada", "coder"), createdWith("b", "Beta", "bob", "writer"), runs("b", "RUN_STARTED", "i"))
	now := l.Clock.Now()
	doc := func(offset int64, kind, role string, ago time.Duration) search.Document {
		return search.Document{Offset: offset, Kind: kind, Role: role, Thread: "main", Text: "word", Time: now.Add(-ago)}
	}
	l.hold("a", doc(0, search.DocTitle, "", time.Hour), doc(1, search.DocMessage, "user", time.Hour), doc(2, search.DocTool, "tool", 0))
	l.hold("b", doc(0, search.DocMessage, "assistant", 0))
	for _, c := range []struct {
		q    search.Query
		want []string
	}{
		{search.Query{}, []string{"a/0", "a/1", "a/2", "b/0"}},
		{search.Query{Session: "a"}, []string{"a/0", "a/1", "a/2"}},
		{search.Query{Session: "nobody"}, nil},
		{search.Query{Kind: "title"}, []string{"a/0"}},
		{search.Query{Kind: "message"}, []string{"a/1", "b/0"}},
		{search.Query{Role: "tool"}, []string{"a/2"}},
		{search.Query{Owner: "bob"}, []string{"b/0"}},
		{search.Query{Agent: "coder", Kind: "tool"}, []string{"a/2"}},
		{search.Query{Status: tapedeck.StatusRunning}, []string{"b/0"}},
		{search.Query{From: now}, []string{"a/2", "b/0"}},
		{search.Query{From: now.Add(-time.Hour), To: now}, []string{"a/0", "a/1"}},
		{search.Query{To: now.Add(-time.Hour)}, nil},
	} {
		c.q.Text = "word"
		l.finds(c.q, c.want...)
	}
	if h := must(l.index.Search(l.ctx, search.Query{Text: "word", Session: "b"}))(t).Hits[0]; h.Title != "Beta" {
		t.Errorf("the title is %q", h.Title)
	}
}

func testIndexPages(t *testing.T, l *library) {
	for i := range 25 {
		l.put(fmt.Sprint("s", i), "word")
		l.Clock.Advance(time.Second)
	}
	q := search.Query{Text: "word", Limit: 10}
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
		want = append(want, fmt.Sprint("s", 24-i)) // all match equally well
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, cursor := range []string{"x", "-1", "1e3", "99999999999999999999"} {
		if _, err := l.index.Search(l.ctx, search.Query{Text: "word", Cursor: cursor}); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// testBehind: Unindexed returns the sessions that are not indexed, the newest first,
// and never streams.
func testBehind(t *testing.T, l *library) {
	l.play(create("a", with(3)), create("stream/a", with(2)), create("b", from("a", 2), with(2)))
	unindexed := func(want ...search.Pending) {
		t.Helper()
		got, n, err := l.index.Unindexed(l.ctx, 10)
		for i := range got {
			got[i].Gen = 0
		}
		if d := cmp.Diff(want, got); d != "" && n > 0 || n != len(want) || err != nil {
			t.Errorf("%d, %v, %s", n, err, d)
		}
	}
	unindexed(search.Pending{Session: "b", From: 2, Head: 4}, search.Pending{Session: "a", Head: 3})
	if got, n, err := l.index.Unindexed(l.ctx, 1); len(got) != 1 || n != 2 || err != nil {
		t.Errorf("one of them: %v, %d, %v", got, n, err)
	}
	gen := must(l.Head(l.ctx, "a"))(t).Gen
	for _, in := range []search.Batch{
		{Session: "a", Gen: gen, Seen: 3, Resume: 1, Base: 3}, {Session: "b", Gen: gen, Seen: 4}, {Session: "nobody", Gen: 99, Seen: 1},
	} {
		if err := l.index.Index(l.ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	unindexed(search.Pending{Session: "b", From: 2, Head: 4})
	l.play(write("a", 1))
	unindexed(search.Pending{Session: "b", From: 2, Head: 4}, search.Pending{Session: "a", From: 1, Base: 3, Head: 4})
}

// testReplacing: documents that are indexed again replace the old ones.
func testReplacing(t *testing.T, l *library) {
	l.put("a", "one", "two", "three")
	gen := must(l.Head(l.ctx, "a"))(t).Gen
	title := func(offset int64, text string) search.Document {
		return search.Document{Offset: offset, Kind: search.DocTitle, Text: text}
	}
	put := func(from int64, docs ...search.Document) {
		t.Helper()
		if err := l.index.Index(l.ctx, search.Batch{Session: "a", Gen: gen, From: from, Seen: 3, Resume: 3, Documents: docs}); err != nil {
			t.Fatal(err)
		}
	}
	put(1, search.Document{Offset: 1, Kind: search.DocMessage, Text: "deux"}, title(2, "first title"))
	l.finds(search.Query{Text: "one"}, "a/0")
	l.finds(search.Query{Text: "two"})
	l.finds(search.Query{Text: "three"})
	l.finds(search.Query{Text: "deux"}, "a/1")
	put(3, title(4, "second title"))
	l.finds(search.Query{Text: "title"}, "a/4")
	l.finds(search.Query{Text: "first"})
	put(5, title(5, ""))
	l.finds(search.Query{Text: "title"})
}

// testGone: a search finds nothing in a session that was deleted, has expired or was
// passed to Forget. A recreated session has no documents of the old one.
func testGone(t *testing.T, l *library) {
	l.put("a", "word")
	l.put("b", "word")
	l.play(create("fork", from("b", 1)), create("mortal", living(time.Minute)))
	l.put("mortal", "word")
	l.finds(search.Query{Text: "word"}, "a/0", "b/0", "mortal/0")
	l.play(remove("a"), removeSoftly("b"))
	l.finds(search.Query{Text: "word"}, "mortal/0")
	l.Clock.Advance(time.Hour)
	l.finds(search.Query{Text: "word"})
	l.play(create("a", with(1)))
	l.finds(search.Query{Text: "word"})
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
	l.finds(search.Query{Text: "word"})
	if got, _, err := l.index.Unindexed(l.ctx, 10); err != nil || !slices.ContainsFunc(got, func(u search.Pending) bool { return u.Session == "a" && u.From == 0 }) {
		t.Errorf("it is not indexed again: %v, %v", got, err)
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

// testHostileSearch: only a text without a word to search for is an error.
func testHostileSearch(t *testing.T, l *library) {
	l.put("a", `NEAR("a" OR text:x) AND {b} ^c + d - e " ' ; DROP TABLE docs -- \ % _ ( [ NULL word`)
	for _, text := range []string{
		`NEAR(a b)`, `NEAR(`, `a NEAR/3 b`, `text:word`, `docs.text:word`, `{text}:word`, `^word`, `wo*rd`, `word**`, `"word" *`, `(word`, `word)`,
		`word AND`, `OR word`, `NOT word`, `word + word`, `word"`, `"word`, `wo"rd`, `"wo""rd"`, `'; DROP TABLE docs; --`, `word\`, `word%`, "word\x00more", "word\x00\"more",
		"wo\nrd", `-word a`, `word -"`, `word -`, "word \xff", `[word]`, `word:`, `:word`, `word,word`, `- - -word x`, `word*-a`, `«word»`, `text : word`, `-text:word x`,
	} {
		if _, err := l.index.Search(l.ctx, search.Query{Text: text}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{``, ` `, `-`, `*`, `"`, `""`, `-word`, `()`, strings.Repeat("a ", 100)} {
		if _, err := l.index.Search(l.ctx, search.Query{Text: text}); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	l.finds(search.Query{Text: "word", Session: `a' OR '1'='1`})
	l.finds(search.Query{Text: "word"}, "a/0")
}

func testIndexCancelled(t *testing.T, l *library) {
	l.put("a", "word")
	ctx, cancel := context.WithCancel(l.ctx)
	cancel()
	_, _, uerr := l.index.Unindexed(ctx, 1)
	_, serr := l.index.Search(ctx, search.Query{Text: "word"})
	ierr := l.index.Index(ctx, search.Batch{Session: "a"})
	for call, err := range map[string]error{"unindexed": uerr, "search": serr, "index": ierr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", call, err)
		}
	}
}
