package sqlite

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestErrorsOfTheDatabaseTellNothing: messages of the database are only the cause of
// an error, for the operator. The error itself says what to do.
func TestErrorsOfTheDatabaseTellNothing(t *testing.T) {
	secret := &dbError{errors.New("SQL logic error: no such column secret in /home/ada/tapedeck.db")}
	for name, say := range map[string]func(error) error{"read": unread, "written": unwritten} {
		err := say(secret)
		var e *tapedeck.Error
		switch {
		case !errors.As(err, &e) || !errors.Is(err, secret):
			t.Errorf("%s: got %v, want an error of ours with the cause", name, err)
		case e.Kind != tapedeck.Unavailable || e.Hint == "" || strings.Contains(e.Message+e.Hint, "secret"):
			t.Errorf("%s: %+v", name, e)
		}
	}
}
