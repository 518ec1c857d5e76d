package secret

import (
	"encoding/base64"
	"errors"
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
		"GET /v1?api-key=s3cret%2Fkey&flag-of-mine&v=1": "GET /v1?…",
		"flag-of-mine":          "…",
		"sk-12345 and abcdefgh": "… and …",
		"ada says v is 1, and hunter-22s is another word": "ada says v is 1, and hunter-22s is another word",
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
