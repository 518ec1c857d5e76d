package secret

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// Address returns an address for a log or an error: without the user, the query and the
// fragment, which may be secrets.
func Address(address string) string {
	address, _, _ = strings.Cut(address, "#")
	address, _, _ = strings.Cut(address, "?")
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	}
	host, path, hasPath := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if hasPath {
		host += "/" + path
	}
	if !ok {
		return host
	}
	return scheme + "://" + host
}

// minLength is the length, in bytes, from which a word counts as a secret. Local servers
// accept any word as a key, and a short word can be in any sentence.
const minLength = 8

// Words are what another server knows and must not repeat in an error.
type Words []string

// WordsOf returns the secrets of requests to an address: its user and query, the words of the
// headers, and a key.
func WordsOf(address string, headers map[string]string, key string) (w Words) {
	add := func(text string) {
		for _, word := range strings.Fields(text) {
			if len(word) >= minLength {
				w = append(w, word)
			}
		}
	}
	add(key)
	for _, value := range headers {
		add(value)
	}
	u, err := url.Parse(address)
	if err != nil {
		return w
	}
	if u.User != nil {
		name := u.User.Username()
		password, ok := u.User.Password()
		if !ok {
			add(name)
		}
		add(u.User.String())
		add(name + ":" + password)
		add(base64.StdEncoding.EncodeToString([]byte(name + ":" + password))) // as Basic sends it
		add(password)
	}
	add(u.RawQuery)
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			value = name
		}
		add(value)
		if decoded, err := url.QueryUnescape(value); err == nil {
			add(decoded)
		}
	}
	return w
}

// Hide returns a text without the secrets.
func (w Words) Hide(text string) string {
	for _, word := range w {
		text = without(text, word)
	}
	return text
}

// HideIn returns an error without the secrets.
func (w Words) HideIn(err error) error {
	var e *tapedeck.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		hidden := *e
		hidden.Message, hidden.Hint = w.Hide(e.Message), w.Hide(e.Hint)
		if hidden.Message != e.Message || hidden.Hint != e.Hint {
			return &hidden
		}
	default:
		if text := err.Error(); w.Hide(text) != text {
			return errors.New(w.Hide(text))
		}
	}
	return err
}

// without replaces a word by "…" where it is not a part of a longer one.
func without(text, word string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, word)
		if i < 0 {
			return b.String() + text
		}
		end := i + len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if inWord(before) || inWord(after) {
			b.WriteString(text[:i+1])
			text = text[i+1:]
			continue
		}
		b.WriteString(text[:i] + "…")
		text = text[end:]
	}
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-'
}
