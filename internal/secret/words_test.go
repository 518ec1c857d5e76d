package secret

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"http://h:1/p":                     "http://h:1/p",
		"https://ada:pass@h/p?key=a@b/c#b": "https://h/p",
		"h:1":                              "h:1",
		"ada:pass@h:1?x=y":                 "h:1",
		"":                                 "",
	} {
		if got := Address(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

// TestWords: nothing that a request to an address has of secrets stays in an error.
func TestWords(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("ada:hunter-22"))
	w := WordsOf("http://ada:hunter-22@h/v1?api-key=s3cret%2Fkey&flag-of-mine&v=1", map[string]string{"Authorization": "Bearer abcdefgh"}, "sk-12345")
	for said, want := range map[string]string{
		"no Basic " + basic + " here":                   "no Basic … here",
		"hunter-22, s3cret/key, s3cret%2Fkey":           "…, …, …",
		"GET /v1?api-key=s3cret%2Fkey&flag-of-mine&v=1": "GET /v1?api-key=…&…&v=1",
		"flag-of-mine":          "…",
		"sk-12345 and abcdefgh": "… and …",
		"ada says v is 1, and hunter-22s is one word": "ada says v is 1, and …s is one word",
		"-sk-12345-, _sk-12345_, SK-12345sk-12345":    "-…-, _…_, …",
		"it was cut in sk-12":                         "it was cut in …",
	} {
		for _, err := range []error{errors.New(said), tapedeck.Errorf(tapedeck.Unavailable, "%s", said), tapedeck.Errorf(tapedeck.Invalid, "x").WithHint("%s", said)} {
			got := w.HideIn(err)
			var e *tapedeck.Error
			if errors.As(got, &e) && e.Hint != "" {
				got = errors.New(e.Hint)
			}
			if got.Error() != want || tapedeck.KindOf(w.HideIn(err)) != tapedeck.KindOf(err) {
				t.Errorf("%q: %q, want %q", said, got, want)
			}
		}
	}
}

// spellings are how another server may repeat a word.
var spellings = map[string]func(string) string{
	"as it is":          func(s string) string { return s },
	"JSON":              func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"Go":                func(s string) string { return fmt.Sprintf("%q", s) },
	"HTML":              html.EscapeString,
	"a query":           url.QueryEscape,
	"a path":            url.PathEscape,
	"twice":             func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"mixed":             func(s string) string { return html.EscapeString(url.QueryEscape(strings.ToUpper(s))) },
	"each":              func(s string) string { return "%" + strings.Trim(fmt.Sprintf("% x", s), " ") },
	"lower":             func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
	"upper":             strings.ToUpper,
	"base64":            func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 of a URL":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 in a query": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	"base64 of more":    func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ab" + s + "c")) },
	"invisible":         func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") },
}

// TestNoPartStays: of a random secret no run of 8 bytes is in an error, in no spelling,
// whatever is around it and wherever the text is cut.
func TestNoPartStays(t *testing.T) {
	const letters = `abcXYZ019+/=_-.:"'\&<>%~`
	random := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	for range 150 {
		secret, n := word(minLength+random.IntN(40)), 0
		if levels(secret, func(units []unit) { n = len(units) }); n < minLength {
			continue // it has escapes itself, and little else
		}
		w := WordsOf("http://h", map[string]string{"X-Key": "Bearer " + secret}, "")
		for name, spell := range spellings {
			spelled := spell(secret)
			if name == "each" {
				spelled = strings.ReplaceAll(spelled, " ", "%")
			}
			said := strings.Repeat("z", random.IntN(40)) + "x" + spelled + []string{"", "_", "-", " and", "x" + spelled}[random.IntN(5)]
			whole := []string{w.Line(said, 300), w.Line(said, random.IntN(60)), w.HideIn(errors.New(strings.ReplaceAll(said, "\u200b", ""))).Error()}
			for i, got := range append(whole,
				w.Line(said[:random.IntN(len(said)+1)], 300), w.Line(strings.Repeat(" ", maxText-random.IntN(60))+said, 300)) {
				seen, parts := strings.ToLower(got), []string{secret}
				if i < len(whole) { // of what a reader has cut, fewer bytes of the secret can have 8 bytes
					parts = append(parts, strings.ReplaceAll(spelled, "\u200b", ""))
				}
				for _, s := range parts {
					s = strings.ToLower(s)
					for i := range len(s) - minLength + 1 {
						if part := s[i : i+minLength]; strings.Contains(seen, part) {
							t.Fatalf("%s of %q: %q is in %q", name, secret, part, got)
						}
					}
				}
			}
		}
	}
}

// TestPublicHeaders: a header that says which form an answer has is no secret.
func TestPublicHeaders(t *testing.T) {
	w := WordsOf("", map[string]string{
		"accept": "x-special/answer", "User-Agent": "spaceship/2", "X-Form": "application/problem+json; v=1", "Referer": "https://app.tapedeck.dev",
	}, "")
	const said = "want application/problem+json from a spaceship, see https://docs.example and x-special/answer"
	if got := w.Hide(said); got != said {
		t.Errorf("%q", got)
	}
}
