package payload

import "github.com/tapedeck/tapedeck/internal/jsonobj"

// A Piece is a piece of a text, such as the delta of an event. It is UTF-8, except that
// it keeps one half of a surrogate pair, as three bytes: a program that cuts text by
// UTF-16 units divides a character between two pieces. Pieces can be appended to each
// other as they are; Whole returns the text that they make.
type Piece = jsonobj.Piece

// Whole returns the text that pieces make that were joined to a string: halves of a
// surrogate pair that have met become their character, and a half that is alone becomes
// U+FFFD.
func Whole(pieces string) string { return jsonobj.Whole(pieces) }

// Halves holds a half at the end of a piece back until the next piece of the same text,
// for those who cannot take a text back once they have shown it.
type Halves = jsonobj.Halves
