package search

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	long := strings.Repeat("é", 300)
	for text, want := range map[string]string{
		"Über NAÏVE Åé İstanbul":         "uber naive ae istanbul",
		"die Straße, STRASSE ẞ":          "die strasse strasse ss",
		"ΣΊΣΥΦΟΣ σίσυφος":                "σισυφοσ σισυφοσ",
		"Ёлка й":                         "елка и",
		"x2 ² src/login_form.go":         "x2 2 src login form go",
		"ＦＵＬＬ　１２ ﬁne":                    "full 12 fine",
		"soft\u00adhyphen می\u200cخواهم": "softhyphen میخواهم",
		"مُحَمَّد שָׁלוֹם":               "محمد שלום",
		"कि की":                          "कि की",
		"自行车":                            "自行 行车 车",
		"が ｶﾞｷﾞ ラーメン":                    "が ガギ ギ ラー ーメ メン ン",
		"か\u3099き":                       "がき き",
		"한국어 \u1112\u1161\u11ab국":        "한국 국어 어 한국 국",
		"ไทยง่าย":                        "ไท ทย ยง่ ง่า าย ย",
		"使用Tapedeck服务器2个":                "使用 用 tapedeck 服务 务器 器 2 个",
		"𠮷野家":                            "𠮷野 野家 家",
		"":                               "",
		"\xff … 🚲 — \u0301":              "",
		long:                             strings.Repeat("e", 128), // 256 bytes of the text
		strings.Repeat("x", 300):         strings.Repeat("x", 256),
	} {
		var got []string
		for _, w := range Words(text) {
			got = append(got, w.Text)
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestMatch(t *testing.T) {
	long := strings.Repeat("word ", 40)
	for _, c := range []struct{ text, query, want string }{
		{"The quick brown fox", "fox QUICK", "The «quick» brown «fox»"},
		{"The quick brown fox", `"quick fox"`, ""},
		{"The quick brown fox", `brown -cow`, "The quick «brown» fox"},
		{"The quick brown fox", `brown -fo*`, ""},
		{long + "needle " + long, "needle", "…" + long[:54] + " «needle» " + long[:54] + "…"},
		{"die Straße", "strasse", "die «Straße»"},
		{"我喜欢自行车和火车", "自行车", "我喜欢«自行车»和火车"},
		{"我喜欢自行车和火车", "火车", "我喜欢自行车和«火车»"},
		{"我喜欢自行车和火车", "车", "我喜欢自行«车»和火«车»"},
		{"我喜欢自行车和火车", "行和", ""},
		{"東京都に行きました。", "行きまし", "東京都に«行きまし»た。"},
		{"ภาษาไทยง่ายมาก", "ไทย", "ภาษา«ไทย»ง่ายมาก"},
		{"학교에서 공부했습니다", "공부 학교*", "«학교»에서 «공부»했습니다"},
		{"使用Tapedeck服务器", "tapedeck服务", "使用«Tapedeck服务»器"},
		{"使用Tapedeck服务器", "用Tapedeck", "使«用Tapedeck»服务器"},
		{"使用Tapedeck服务器", "使Tapedeck", ""},
		{strings.Repeat("…", 500) + "x" + strings.Repeat("—", 500), "x", "…«x»…"},
		{strings.Repeat("x", 9000), "xx*", "«" + strings.Repeat("x", 256) + "»…"},
	} {
		terms, err := Parse(c.query)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := Match(c.text, terms)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q in %.60q: %q, %v; want %q", c.query, c.text, got, ok, c.want)
		}
	}
}

// TestParts: a part of a text without spaces is found in it, and what is not a part of it
// is not found.
func TestParts(t *testing.T) {
	const characters = "自行车火我がきラー공부ไทยງ𠮷"
	rapid.Check(t, func(t *rapid.T) {
		text := []rune(rapid.StringOfN(rapid.SampledFrom([]rune(characters)), 1, 12, -1).Draw(t, "text"))
		from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
		part := string(text[from:rapid.IntRange(from+1, len(text)).Draw(t, "to")])
		if terms, err := Parse(part); err != nil {
			t.Fatal(err)
		} else if _, ok := Match("x"+string(text)+" y", terms); !ok {
			t.Fatalf("%q is not found in %q", part, string(text))
		}
		other := rapid.StringOfN(rapid.SampledFrom([]rune(characters)), 1, 4, -1).Draw(t, "other")
		terms, err := Parse(other)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := Match(string(text), terms); ok != strings.Contains(string(text), other) {
			t.Fatalf("%q in %q: found is %v", other, string(text), ok)
		}
	})
}

// FuzzWords: the words of any text have only letters, digits and marks, places in order,
// and a limited length; a text in another normal form has the same words; the text of a
// word finds it again.
func FuzzWords(f *testing.F) {
	f.Add(`it's a "quick" \ fox:1`)
	f.Add("İ ẞ ｶﾞ 한국 ไทยง่าย ½ ﷺ")
	f.Add("a\u0301\u00ad\u200d\u3099車\uff9f")
	f.Fuzz(func(t *testing.T, text string) {
		list := Words(text)
		at := 0
		for i, w := range list {
			if w.Start < at || w.Start >= w.End || w.End > len(text) {
				t.Fatalf("%q: the place of word %d is %d to %d", text, i, w.Start, w.End)
			}
			at = w.Start + 1
			if w.Text == "" || len(w.Text) > 4*maxWord || !utf8.ValidString(w.Text) {
				t.Fatalf("%q has the word %q", text, w.Text)
			}
			if strings.ContainsFunc(w.Text, func(r rune) bool {
				return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Co, r)
			}) {
				t.Fatalf("%q has the word %q", text, w.Text)
			}
		}
		if !utf8.ValidString(text) || len(text) > maxWord/4 {
			return
		}
		if same := Words(norm.NFD.String(text)); !slices.EqualFunc(list, same, func(a, b Word) bool { return a.Text == b.Text }) {
			t.Fatalf("%q: %+v, but decomposed %+v", text, list, same)
		}
		terms, err := Parse(`"` + strings.ReplaceAll(text, `"`, " ") + `"`)
		if err != nil {
			return
		}
		if _, ok := Match(text, terms); !ok {
			t.Fatalf("%q does not find itself: %+v", text, terms)
		}
	})
}
