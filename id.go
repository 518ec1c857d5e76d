package tapedeck

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// These are the longest names that are accepted, in bytes.
const (
	maxIDLen   = 128  // session, invocation, instance and thread ids
	maxPathLen = 1024 // the path of a stream
	maxNameLen = 512  // titles, owners and actors
)

// NewID returns a new id: the prefix (such as "ses_", "inv_" or "ins_") and 26
// characters of Crockford base 32. They sort by time of creation in
// milliseconds and end in 80 random bits.
func NewID(prefix string) string {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails, by its documentation
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var s [26]byte
	for i := range s {
		s[25-i] = alphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return prefix + string(s[:])
}

// CheckID reports whether id can name a session, invocation, instance or
// thread: 1 to 128 ASCII letters, digits and the characters - _ . : @.
// It must begin with a letter, a digit or an underscore. So an id is never a
// path, and needs no escaping in a URL, a file name or a log line. The parameter
// what is the name of the id in errors.
func CheckID(what, id string) error {
	switch {
	case id == "":
		return Errorf(Invalid, "%s is empty", what)
	case len(id) > maxIDLen:
		return Errorf(Invalid, "%s has %d bytes; at most %d are allowed", what, len(id), maxIDLen)
	}
	return checkIDText(what, id)
}

// checkIDText checks the characters of an id that is not empty.
func checkIDText(what, id string) error {
	if !isIDStart(id[0]) {
		return Errorf(Invalid, "%s %q must begin with a letter, a digit or an underscore", what, id)
	}
	for i := range len(id) {
		if c := id[i]; !isIDStart(c) && c != '-' && c != '.' && c != ':' && c != '@' {
			return Errorf(Invalid, "%s %q has a character that is not allowed", what, id).
				WithHint("use letters, digits and - _ . : @")
		}
	}
	return nil
}

func isIDStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// CheckName reports whether s can be shown as a title, an owner or an actor: at
// most 512 bytes of valid UTF-8 without control characters. It may be
// empty.
func CheckName(what, s string) error {
	switch {
	case len(s) > maxNameLen:
		return Errorf(Invalid, "%s has %d bytes; at most %d are allowed", what, len(s), maxNameLen)
	case !utf8.ValidString(s):
		return Errorf(Invalid, "%s is not valid UTF-8", what)
	case strings.ContainsFunc(s, unicode.IsControl):
		return Errorf(Invalid, "%s has a control character", what)
	}
	return nil
}

// CheckPath reports whether p can name a stream: 1 to 1024 bytes of
// valid UTF-8, in segments divided by "/". No segment may be empty, "." or
// "..". Control characters and backslashes are not allowed.
func CheckPath(p string) error {
	switch {
	case p == "":
		return Errorf(Invalid, "the stream's path is empty")
	case len(p) > maxPathLen:
		return Errorf(Invalid, "the stream's path has %d bytes; at most %d are allowed", len(p), maxPathLen)
	case !utf8.ValidString(p):
		return Errorf(Invalid, "the stream's path is not valid UTF-8")
	case strings.ContainsFunc(p, unicode.IsControl) || strings.Contains(p, `\`):
		return Errorf(Invalid, "the stream's path has a control character or a backslash")
	}
	for seg := range strings.SplitSeq(p, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return Errorf(Invalid, "the stream's path has an empty, %q or %q segment", ".", "..")
		}
	}
	return nil
}
