package tapedeck

import "fmt"

// Refuse returns the error of an append that is refused for reason r by a
// session whose head is head.
func Refuse(r Refusal, head int64, k Kind, format string, args ...any) *AppendError {
	return &AppendError{Refusal: r, Head: head, Err: &Error{Kind: k, Message: fmt.Sprintf(format, args...)}}
}
