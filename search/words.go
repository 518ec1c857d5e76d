package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A Word is a word of a text as indexes keep it: without case, accents and variants of
// width. It has only letters, digits and marks, so nothing in it has a meaning in the
// language of a query.
//
// Chinese, Japanese, Korean, Thai and some other languages are written without spaces, or
// with endings that stay at the word. Each character of theirs begins a word, which has
// this character and the next one: 自行车 has the words 自行, 行车 and 车. A part of such a
// text is a phrase of these words, see [Term].
type Word struct {
	Text       string
	Start, End int // the bytes of the text from which it comes; words of two characters overlap
}

// maxWord is the limit of a word in bytes. What follows in a longer one is not looked at.
const maxWord = 256

// Words returns the words of a text.
func Words(text string) []Word {
	const wordLength = 6 // with a space
	w := words{text: text, lower: lower(text), list: make([]Word, 0, len(text)/wordLength+1)}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case unspaced(r):
			i = w.characters(i)
		case begins(r):
			i = w.word(i)
		default:
			i += n
		}
	}
	return w.list
}

// words collects the words of a text.
type words struct {
	text  string
	lower string // the text with its letters of ASCII in lower case, whose words need no memory of their own
	list  []Word
}

// word adds the word at start, and returns where it ends.
func (w *words) word(start int) int {
	i, ascii := start, true
	for i < len(w.text) {
		if c := w.lower[i]; 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(w.text[i:])
		if !begins(r) && !continues(r) || unspaced(r) {
			break
		}
		i, ascii = i+n, false
	}
	end := start + len(cut(w.text[start:i]))
	s := w.lower[start:end]
	if !ascii {
		s = cut(fold(s))
	}
	if s != "" {
		w.list = append(w.list, Word{s, start, end})
	}
	return i
}

// lower returns a text with its letters of ASCII in lower case.
func lower(text string) string {
	i := strings.IndexFunc(text, func(r rune) bool { return 'A' <= r && r <= 'Z' })
	if i < 0 {
		return text
	}
	b := []byte(text)
	for ; i < len(b); i++ {
		if c := b[i]; 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// characters adds the words of characters that are written without spaces, and returns
// where they end.
func (w *words) characters(i int) int {
	before := -1 // the word that gets the next character, too
	for i < len(w.text) {
		r, n := utf8.DecodeRuneInString(w.text[i:])
		if !unspaced(r) {
			break
		}
		start := i
		for i += n; i < len(w.text); i += n {
			if r, n = utf8.DecodeRuneInString(w.text[i:]); !continues(r) && !completes(r) {
				break
			}
		}
		s := cut(fold(w.text[start:i]))
		if s == "" {
			continue
		}
		if before >= 0 {
			w.list[before].Text += s
			w.list[before].End = i
		}
		before = len(w.list)
		w.list = append(w.list, Word{s, start, i})
	}
	return i
}

// begins reports whether a character can begin a word.
func begins(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r)
}

// continues reports whether a character belongs to the one before it: marks, and what
// only says where a line may break or how letters are joined.
func continues(r rune) bool {
	return r >= utf8.RuneSelf && (unicode.IsMark(r) || r == '\u00ad' || '\u200c' <= r && r <= '\u200d' || r == '\u2060')
}

// completes reports whether a letter makes one character with those before it: the narrow
// marks of Japanese, and the second and third part of a Korean syllable, as the names of
// files on a Mac have them.
func completes(r rune) bool { return r == '\uff9e' || r == '\uff9f' || '\u1160' <= r && r <= '\u11ff' }

// unspaced reports whether a character is of a script whose words have no spaces between
// them, or endings that stay at the word.
func unspaced(r rune) bool {
	const firstOfThem, longVowel, narrowLongVowel = '\u0e00', '\u30fc', '\uff70'
	return r >= firstOfThem && (r == longVowel || r == narrowLongVowel || unicode.IsLetter(r) && unicode.In(r,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
		unicode.Bopomofo, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// fold removes case, accents and variants of width, so that Straße is STRASSE and Ｕ is u.
func fold(s string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		switch {
		case r == 'ß' || r == 'ẞ':
			b.WriteString("ss")
		case accent(r) || !begins(r) && !unicode.IsMark(r):
		default:
			b.WriteRune(unicode.ToLower(unicode.ToUpper(r))) // upper first: σ and ς are one letter
		}
	}
	return norm.NFC.String(b.String())
}

// accent reports whether a mark is one that people leave out when they search: accents,
// and the vowel points of Arabic and Hebrew. In other scripts a mark makes another letter.
func accent(r rune) bool {
	const voicedMark, semiVoicedMark = '\u3099', '\u309a'
	return unicode.Is(unicode.Mn, r) && unicode.In(r, unicode.Inherited, unicode.Hebrew) && r != voicedMark && r != semiVoicedMark
}

// cut returns the part of a word that counts.
func cut(s string) string {
	if len(s) <= maxWord {
		return s
	}
	end := maxWord
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
