package tapedeck

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestKindOf(t *testing.T) {
	cause := Errorf(Conflict, "the session is closed")
	for _, test := range []struct {
		err  error
		want Kind
	}{
		{nil, ""},
		{io.EOF, Internal},
		{cause, Conflict},
		{fmt.Errorf("wrapped: %w", cause), Conflict},
		{Errorf(Invalid, "outer: %w", cause), Invalid},
		{refuse(RefusedEpoch, 3, Forbidden, "stale"), Forbidden},
		{errors.Join(io.EOF, cause), Conflict},
	} {
		if got := KindOf(test.err); got != test.want {
			t.Errorf("KindOf(%v) = %q, want %q", test.err, got, test.want)
		}
	}
}

func TestError(t *testing.T) {
	e := Errorf(Unavailable, "it cannot be stored: %w", io.ErrShortWrite).WithHint("free some space, at least %d MB", 5)
	if e.Error() != "it cannot be stored: short write" || e.Hint != "free some space, at least 5 MB" || !errors.Is(e, io.ErrShortWrite) {
		t.Errorf("got %+v", e)
	}
	if e := Errorf(Internal, "it failed").Because(io.EOF); e.Error() != "it failed" || !errors.Is(e, io.EOF) {
		t.Errorf("got %+v", e)
	}
}

func TestRefuse(t *testing.T) {
	err := error(refuse(RefusedOffset, 17, Conflict, "session %s is at offset %d", "s", 17))
	var a *AppendError
	var e *Error
	if !errors.As(err, &a) || a.Refusal != RefusedOffset || a.Head != 17 || !errors.As(err, &e) || e.Message != "session s is at offset 17" || err.Error() != e.Message {
		t.Errorf("got %+v", err)
	}
	if got := RefusalOf(fmt.Errorf("wrapped: %w", err)); got != RefusedOffset || RefusalOf(io.EOF) != "" || RefusalOf(nil) != "" {
		t.Errorf("the refusal is %q", got)
	}
}

func refuse(r Refusal, head int64, k Kind, format string, args ...any) *AppendError {
	return &AppendError{Refusal: r, Head: head, Err: Errorf(k, format, args...)}
}
