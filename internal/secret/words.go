package secret

import (
	"encoding/base64"
	"errors"
	"mime"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"

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

// minStart is how much of the beginning of a secret the end of a text must have to be hidden:
// what reads the text may have cut the secret there.
const minStart = 4

// Words are what another server knows and must not repeat in an error. A nil Words hides nothing.
type Words struct {
	list  []string
	index func() *index
}

// An index has the parts of secrets in all their spellings, in lower case.
type index struct {
	windows map[[minLength]byte]bool // all parts of this length
	starts  map[string]bool          // the beginnings that are shorter
}

// WordsOf returns the secrets of requests to an address: its user, what its query says, the
// words of the headers, and a key.
func WordsOf(address string, headers map[string]string, key string) *Words {
	w := new(Words)
	w.index = sync.OnceValue(w.newIndex)
	w.add(key)
	for name, value := range headers {
		if !isPublic(name, value) {
			w.add(value)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		return w
	}
	if u.User != nil {
		name := u.User.Username()
		password, ok := u.User.Password()
		if !ok {
			w.add(name)
		}
		w.add(u.User.String())
		w.add(name + ":" + password)
		w.add(base64.StdEncoding.EncodeToString([]byte(name + ":" + password))) // as Basic sends it
		w.add(password)
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" {
			value = name
		}
		w.add(value)
		if decoded, err := url.QueryUnescape(value); err == nil {
			w.add(decoded)
		}
	}
	return w
}

func (w *Words) add(text string) {
	for _, word := range strings.Fields(text) {
		for _, scheme := range []string{"https://", "http://"} {
			word = strings.TrimPrefix(word, scheme)
		}
		if len(word) >= minLength {
			w.list = append(w.list, word)
		}
	}
}

// isPublic reports whether a header is no secret: it says which form an answer has, or what
// program asks.
func isPublic(name, value string) bool {
	name = strings.ToLower(name)
	if name == "user-agent" || name == "content-type" || strings.HasPrefix(name, "accept") {
		return true
	}
	media, _, err := mime.ParseMediaType(value)
	kind, _, ok := strings.Cut(media, "/")
	return err == nil && ok && slices.Contains([]string{"application", "audio", "image", "multipart", "text", "video"}, kind)
}

func (w *Words) newIndex() *index {
	x := &index{map[[minLength]byte]bool{}, map[string]bool{}}
	add := func(units []unit) {
		s := bytesOf(units)
		for i := range len(s) - minLength + 1 {
			x.windows[[minLength]byte(s[i:])] = true
		}
		for n := minStart; n < min(minLength, len(s)); n++ {
			x.starts[string(s[:n])] = true
		}
	}
	for _, word := range w.list {
		levels(word, add)
		for _, spelling := range inBase64(word) {
			levels(spelling, add)
		}
	}
	return x
}

func bytesOf(units []unit) []byte {
	s := make([]byte, len(units))
	for i, u := range units {
		s[i] = u.b
	}
	return s
}

// Hide returns a text without the secrets: each run of 8 bytes of one is replaced by "…",
// wherever it stands, in any case, in base64, and with the escapes of URLs, JSON and HTML.
// The beginning of a secret at the end of the text is replaced, too.
func (w *Words) Hide(text string) string {
	if w == nil || len(w.list) == 0 || len(text) < minStart {
		return text
	}
	x, hidden, found := w.index(), make([]bool, len(text)), false
	mark := func(units []unit) {
		found = true
		for i := units[0].from; i < units[len(units)-1].to; i++ {
			hidden[i] = true
		}
	}
	levels(text, func(units []unit) {
		s := bytesOf(units)
		for i := range len(s) - minLength + 1 {
			if x.windows[[minLength]byte(s[i:])] {
				mark(units[i : i+minLength])
			}
		}
		for end := len(s); end > len(s)-maxEscape && end >= minStart; end-- {
			if end < len(s) && strings.IndexByte(`%\&`, s[end]) < 0 {
				continue // not an escape that is cut
			}
			for n := minStart; n <= min(minLength-1, end); n++ {
				if x.starts[string(s[end-n:end])] {
					mark(units[end-n:])
				}
			}
		}
	})
	if !found {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString("…")
		}
	}
	return strings.ToValidUTF8(b.String(), "") // a run may begin inside of a character
}

// maxText is how many bytes of a text are looked at.
const maxText = 64 << 10

// Line returns the first n characters of a text of another server, without the secrets, as one
// line that no terminal obeys. It hides before it cuts, so no beginning of a secret stays.
func (w *Words) Line(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxText)], ""))
	text = w.Hide(strings.Join(strings.Fields(text), " "))
	if r := []rune(text); len(r) > n {
		text = string(r[:n]) + "…"
	}
	return text
}

// HideIn returns an error without the secrets, also in its cause.
func (w *Words) HideIn(err error) error {
	if err == nil {
		return nil
	}
	var e *tapedeck.Error
	if !errors.As(err, &e) {
		if text := err.Error(); w.Hide(text) != text {
			return errors.New(w.Hide(text))
		}
		return err
	}
	hidden := *e
	hidden.Message, hidden.Hint = w.Hide(err.Error()), w.Hide(e.Hint)
	cause := ""
	if e.Err != nil {
		cause = e.Err.Error()
	}
	if w.Hide(cause) != cause {
		hidden.Err = errors.New(w.Hide(cause))
	} else if hidden.Message == err.Error() && hidden.Hint == e.Hint {
		return err
	}
	return &hidden
}
