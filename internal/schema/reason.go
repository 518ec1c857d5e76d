package schema

import (
	"cmp"
	"regexp"
	"strings"
)

// forms are the errors of the library that are most common, and what they say in plain words.
var forms = []struct {
	of  *regexp.Regexp
	say string
}{
	{regexp.MustCompile(`(?s)^type: .* has type "(\w+)", want "(\w+)"$`), "must be a $2, not a $1"},
	{regexp.MustCompile(`(?s)^type: .* has type "(\w+)", want one of "([\w, ]+)"$`), "must be one of $2, not a $1"},
	{regexp.MustCompile(`(?s)^enum: .* does not equal any of: (\[.*\])$`), "must be one of $1"},
	{regexp.MustCompile(`(?s)^minimum: \S+ is less than (-?\d+)(?:\.0+)?$`), "must be at least $1"},
	{regexp.MustCompile(`(?s)^maximum: \S+ is greater than (-?\d+)(?:\.0+)?$`), "must be at most $1"},
	{regexp.MustCompile(`(?s)^required: missing properties: \[(.*)\]$`), "must have $1"},
	{regexp.MustCompile(`(?s)^unexpected additional properties \[(.*)\]$`), "cannot have $1"},
}

var articles = strings.NewReplacer(" a integer", " an integer", " a array", " an array", " a object", " an object", " a null", " null")

// maxReason is the longest reason, in bytes.
const maxReason = 400

// Reason says in plain words why a value does not fit, for an error of [Schema.Validate] or of
// the library. It begins with the name of the part that does not; the whole is called whole.
func Reason(err error, whole string) string {
	place, text := "", err.Error()
	for {
		rest, found := strings.CutPrefix(text, "validating ")
		at, after, more := strings.Cut(rest, ": ")
		if !found || !more {
			break
		}
		place, text = at, after
	}
	name := cmp.Or(valueAt(place), whole)
	said := name + ": " + text
	for _, f := range forms {
		if f.of.MatchString(text) {
			said = name + " " + articles.Replace(f.of.ReplaceAllString(text, f.say))
			break
		}
	}
	if len(said) > maxReason {
		said = strings.ToValidUTF8(said[:maxReason], "") + "…"
	}
	return said
}

// valueAt returns the name of the value that a part of a schema describes, such as todos[].status,
// "" for the whole.
func valueAt(place string) string {
	var name strings.Builder
	words := strings.Split(place, "/")
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "properties":
			if i++; i < len(words) {
				if name.Len() > 0 {
					name.WriteByte('.')
				}
				name.WriteString(strings.NewReplacer("~1", "/", "~0", "~").Replace(words[i]))
			}
		case "items", "prefixItems":
			name.WriteString("[]")
		}
	}
	return name.String()
}
