package exchange

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Limits of a redaction.
const (
	maxRules       = 200
	maxPatternLen  = 2000
	samplesOfARule = 5
)

// A Redactor leaves out of events what its rules match. It reads the events twice:
// first [Redactor.Learn] gets all of them, because a secret can span several
// deltas; then [Redactor.Event] changes them. Between these, it remembers only
// where the matches are, not their text.
type Redactor struct {
	rules      []*rule
	keys       map[string]*rule // by normalized name
	anyPattern *regexp.Regexp   // matches where one of the patterns without needs matches; nil if there are none
	streams    streams
	edits      map[int64][]edit   // in the deltas of streams, by offset of the event
	hits       map[int64]struct{} // other events with a match
}

// A rule is a key or a pattern.
type rule struct {
	api.RedactionRule
	pattern *regexp.Regexp // nil for a key
	needs   []string       // every match has one of them; nil if unknown
}

// NewRedactor returns a redactor, nil if there is nothing to redact. An invalid
// pattern or preset is [tapedeck.Invalid].
func NewRedactor(in api.Redaction) (*Redactor, error) {
	r := &Redactor{keys: map[string]*rule{}, edits: map[int64][]edit{}, hits: map[int64]struct{}{}}
	if len(in.Keys)+len(in.Patterns)+len(in.Presets) > maxRules {
		return nil, tapedeck.Errorf(tapedeck.TooLarge, "there are more than %d rules of redaction", maxRules)
	}
	for _, name := range in.Presets {
		if err := r.preset(name); err != nil {
			return nil, err
		}
	}
	for _, key := range in.Keys {
		if err := r.addKey("key "+short(key), key); err != nil {
			return nil, err
		}
	}
	for _, p := range in.Patterns {
		if err := r.addPattern("pattern "+short(p), p); err != nil {
			return nil, err
		}
	}
	if len(r.rules) == 0 {
		return nil, nil
	}
	r.streams = newStreams(r)
	return r, r.join()
}

func (r *Redactor) addKey(name, key string) error {
	k := normalKey(key)
	if k == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "a key to redact has no letters")
	}
	if r.keys[k] == nil {
		r.keys[k] = r.add(name, nil)
	}
	return nil
}

func (r *Redactor) addPattern(name, pattern string) error {
	if len(pattern) > maxPatternLen {
		return tapedeck.Errorf(tapedeck.TooLarge, "a pattern to redact has more than %d bytes", maxPatternLen)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the pattern %q is not a regular expression", short(pattern)).
			Because(err).WithHint("the syntax is that of RE2, without look-around and back-references")
	}
	if re.MatchString("") {
		return tapedeck.Errorf(tapedeck.Invalid, "the pattern %q matches the empty text, and so everywhere", short(pattern))
	}
	r.add(name, re)
	return nil
}

func (r *Redactor) add(name string, re *regexp.Regexp) *rule {
	one := &rule{RedactionRule: api.RedactionRule{Rule: name}, pattern: re}
	r.rules = append(r.rules, one)
	return one
}

// join makes one expression of the patterns without needs. Most text has no match,
// and then costs one search.
func (r *Redactor) join() error {
	var all []string
	for _, one := range r.rules {
		if one.pattern != nil && one.needs == nil {
			all = append(all, "(?:"+one.pattern.String()+")")
		}
	}
	if all == nil {
		return nil
	}
	re, err := regexp.Compile(strings.Join(all, "|"))
	if err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the patterns are too much for one export").Because(err)
	}
	r.anyPattern = re
	return nil
}

// normalKey maps apiKey, api_key and API-Key to the same key.
func normalKey(key string) string { return strings.ToLower(separators.Replace(key)) }

var separators = strings.NewReplacer("-", "", "_", "")

// key returns the rule for the name of a member, nil if there is none.
func (r *Redactor) key(name string) *rule {
	if len(r.keys) == 0 {
		return nil
	}
	return r.keys[normalKey(name)]
}

// Preview returns the matches so far.
func (r *Redactor) Preview() api.RedactionPreview {
	p := api.RedactionPreview{Events: int64(len(r.hits)), Rules: []api.RedactionRule{}}
	for offset := range r.edits {
		if _, counted := r.hits[offset]; !counted {
			p.Events++
		}
	}
	for _, one := range r.rules {
		p.Rules = append(p.Rules, one.RedactionRule)
	}
	return p
}

func (one *rule) found(offset int64, what string) {
	one.Count++
	if len(one.Samples) < samplesOfARule {
		one.Samples = append(one.Samples, api.RedactionSample{Offset: offset, Masked: mask(what)})
	}
}

// mask shows enough of a secret to recognize it, and too little to use it.
func mask(s string) string {
	shown := 0
	if n := utf8.RuneCountInString(s); n >= 8 {
		shown = 2
	}
	i := 0
	for range shown {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return strings.ToValidUTF8(s[:i], "") + "…"
}

// A span is a part of a text that is left out.
type span struct {
	from, to    int
	context     int    // where the text that identifies the match begins; at most from
	replacement string // in its place
	rules       []*rule
}

// spans returns the parts of a text to leave out, in order. Overlapping ones are
// joined.
func (r *Redactor) spans(s string) []span {
	found := r.keySpans(s)
	asked := r.anyPattern != nil && r.anyPattern.MatchString(s)
	for _, one := range r.rules {
		if !one.mayMatch(s, asked) {
			continue
		}
		for _, at := range one.pattern.FindAllStringIndex(s, -1) {
			if at[0] < at[1] {
				found = append(found, span{at[0], at[1], at[0], api.Redacted, []*rule{one}})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b span) int { return a.from - b.from })
	return merged(found)
}

// mayMatch reports whether a pattern can match. asked tells that a pattern without
// needs has matched.
func (one *rule) mayMatch(s string, asked bool) bool {
	switch {
	case one.pattern == nil:
		return false
	case one.needs == nil:
		return asked
	}
	return slices.ContainsFunc(one.needs, func(need string) bool { return strings.Contains(s, need) })
}

func merged(in []span) []span {
	var out []span
	for _, s := range in {
		last := len(out) - 1
		if last < 0 || s.from >= out[last].to {
			out = append(out, s)
			continue
		}
		o := &out[last]
		if s.to > o.to {
			o.to, o.replacement = s.to, api.Redacted // the quotes of the joined span are at other places
		}
		o.context = min(o.context, s.context)
		o.rules = append(o.rules, s.rules...)
	}
	return out
}

// text redacts a text that is not a stream.
func (r *Redactor) text(s string) (string, []span) {
	spans := r.spans(s)
	if spans == nil {
		return s, nil
	}
	var b strings.Builder
	at := 0
	for _, sp := range spans {
		b.WriteString(s[at:sp.from])
		b.WriteString(sp.replacement)
		at = sp.to
	}
	b.WriteString(s[at:])
	return b.String(), spans
}
