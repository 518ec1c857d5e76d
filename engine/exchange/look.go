package exchange

// A Look says how a recording opens.
type Look struct {
	Start  *int64 `json:"start,omitempty"`  // play begins before this offset; nil: from the beginning with a poster, otherwise at the end
	Poster *int64 `json:"poster,omitempty"` // the moment that is shown until somebody plays it; nil for none
	Theme  string `json:"theme,omitempty"`  // light or dark; "" for that of the reader
}

// A renumbering translates a look to the offsets of a file that has numbers of its own.
type renumbering struct {
	wanted Look
	look   Look
}

// pass is called for each event in order, before it is written: offset is its own, next
// is the one that it gets in the file.
func (r *renumbering) pass(offset, next int64) {
	r.look.Start = moved(r.look.Start, r.wanted.Start, offset, next)
	r.look.Poster = moved(r.look.Poster, r.wanted.Poster, offset, next)
}

// end returns the look, when next events are in the file.
func (r *renumbering) end(next int64) Look {
	r.pass(1<<62, next)
	r.look.Theme = r.wanted.Theme
	return r.look
}

// moved returns the new offset as soon as an event at or after the wanted one passes.
func moved(found, wanted *int64, offset, next int64) *int64 {
	if found != nil || wanted == nil || offset < *wanted {
		return found
	}
	return &next
}
