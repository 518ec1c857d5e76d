package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tapedeck/tapedeck"
)

// A dbError is an error of the database or of the connection to it, as opposed to an
// error of a request.
type dbError struct{ err error }

func (e *dbError) Error() string { return e.err.Error() }
func (e *dbError) Unwrap() error { return e.err }

// These are the codes of PostgreSQL to which the store has an answer of its own.
const (
	codeDivision      = "22012" // the condition of sqlFence or sqlHeads is not met
	codeReadOnly      = "25006"
	codePassword      = "28P01"
	codeAuthorization = "28000"
	codeNoDatabase    = "3D000"
	codeDuplicateName = "42P06"
	codeDuplicate     = "42P07"
	codeDuplicateCol  = "42701"
	codeUnique        = "23505"
	codeDenied        = "42501"
	codeNoTable       = "42P01"
	codeNoColumn      = "42703"
	codeDiskFull      = "53100"
	codeConnections   = "53300"
	codeCancelled     = "57014" // usually the time-out of statements
	codeDamaged       = "XX001" // a page of a table
	codeDamagedIndex  = "XX002"
)

// code returns the code of an error that PostgreSQL has answered, "" for other errors.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isAnswer reports whether PostgreSQL itself has answered with this error, and so has
// rolled the transaction back. A server that shuts down (class 57P) may have committed.
func isAnswer(err error) bool {
	c := code(err)
	return c != "" && !strings.HasPrefix(c, "57P") && !strings.HasPrefix(c, "08")
}

// environmental reports whether no request is to blame for err, but the database, its
// disk or the network.
func environmental(err error) bool {
	c := code(err)
	if len(c) < 2 || c == codeDivision {
		return true
	}
	switch c[:2] {
	case "22", "23", "P0": // data, constraints, triggers
		return false
	case "54": // limits
		return false
	}
	return true
}

// unwritten returns the error that a caller gets when a commit failed. The message
// of the database is only for the operator's log.
func unwritten(err error) error {
	message, hint := "it could not be stored", "try again"
	switch c := code(err); {
	case errors.Is(err, errUncertain):
		message = "the connection to PostgreSQL broke, and it is not certain whether it was stored"
		hint = "try again; if you send it again with the same producer id, it is stored once"
	case c == codePassword || c == codeAuthorization || c == codeNoDatabase:
		message, hint = "it could not be stored, PostgreSQL does not let the server in", "look at the log of the server; it connects again by itself"
	case c == codeDiskFull:
		message, hint = "it could not be stored, PostgreSQL has no space left on its disk", "make room and try again"
	case c == codeReadOnly:
		message, hint = "it could not be stored, PostgreSQL takes no writes: it is a replica, or set to read-only", "look at the database and try again"
	case c == codeDenied:
		message, hint = "it could not be stored, PostgreSQL does not allow it", "look at the rights of the user of the database"
	case c == codeCancelled:
		message, hint = "it could not be stored, PostgreSQL took too long", "try again, or raise --postgres-timeout"
	case c == "":
		message, hint = "it could not be stored, PostgreSQL cannot be reached", "try again; the server connects again by itself"
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "%s", message).WithHint("%s", hint).Because(err)
}

const verifyHint = "run `tapedeck verify --postgres URL`"

// unread returns the error that a caller gets when the database cannot be read.
func unread(err error) error {
	var e *dbError
	if !errors.As(err, &e) {
		return err
	}
	switch c := code(err); {
	case isCorrupt(err):
		return tapedeck.Errorf(tapedeck.Internal, "the database is damaged").WithHint(verifyHint).Because(err)
	case c == codeCancelled:
		return tapedeck.Errorf(tapedeck.Unavailable, "PostgreSQL took too long to answer").WithHint("try again, or raise --postgres-timeout").Because(err)
	case c != "":
		return tapedeck.Errorf(tapedeck.Unavailable, "the database cannot be read now").WithHint("try again").Because(err)
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "PostgreSQL cannot be reached").WithHint("try again; the server connects again by itself").Because(err)
}

// refusal returns the error that a caller gets when a commit failed.
func (s *Store) refusal(err error) error {
	if lost := s.lost.Load(); lost != nil {
		return *lost
	}
	var known *tapedeck.Error
	var broken *dbError
	if errors.As(err, &known) && known.Kind == tapedeck.Internal {
		return known // what it would change is damaged
	}
	if errors.As(err, &known) && !errors.As(err, &broken) && !errors.Is(err, errUncertain) {
		return err
	}
	return unwritten(err)
}

// errClosed returns why the store does not work any more.
func (s *Store) errClosed() error {
	if lost := s.lost.Load(); lost != nil {
		return *lost
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the store is closed")
}

func errNotFound(id string) error {
	return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", id)
}

func errGone(id string) error { return tapedeck.Errorf(tapedeck.Gone, "session %q was deleted", id) }
