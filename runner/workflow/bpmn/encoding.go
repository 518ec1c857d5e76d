package bpmn

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/tapedeck/tapedeck"
)

// declared matches the first line of a file that names its encoding.
var declared = regexp.MustCompile(`^(<\?xml[^>]*?\sencoding\s*=\s*["'])([\w.:-]+)`)

// The names of the encodings in which tools of BPMN write.
var (
	unicodeNames = []string{"utf-8", "utf8", "us-ascii", "ascii", "utf-16", "utf-16le", "utf-16be"}
	latinNames   = []string{"iso-8859-1", "latin1", "latin-1", "windows-1252", "cp1252"}
)

// UTF8 returns a file in UTF-8 and without a byte order mark, so that it can be a text among
// others. A file begins with a mark (UTF-8, UTF-16), or its first line names its encoding
// (ISO-8859-1, and Windows-1252, which has the same letters). A text that is valid in UTF-8
// is in UTF-8, whatever its first line says: a program has read the file before. A file in
// another encoding is returned as it is, and [Read] refuses it.
func UTF8(file []byte) []byte {
	text, _, err := transform.Bytes(unicode.BOMOverride(encoding.Nop.NewDecoder()), file)
	if err != nil {
		return file
	}
	first := declared.FindSubmatchIndex(text[:min(len(text), 200)])
	if first == nil {
		return text
	}
	name := strings.ToLower(string(text[first[4]:first[5]]))
	switch latin := slices.Contains(latinNames, name); {
	case latin && !utf8.Valid(text):
		if text, err = charmap.Windows1252.NewDecoder().Bytes(text); err != nil {
			return file
		}
	case name == unicodeNames[0], !latin && !slices.Contains(unicodeNames, name):
		return text
	}
	return slices.Concat(text[:first[4]], []byte("UTF-8"), text[first[5]:])
}

// foreign refuses the encodings that [UTF8] does not know.
func foreign(name string, _ io.Reader) (io.Reader, error) {
	return nil, tapedeck.Errorf(tapedeck.Invalid, "the encoding %q is not supported; save the file in UTF-8", name)
}
