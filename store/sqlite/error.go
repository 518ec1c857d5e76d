package sqlite

import (
	"errors"
	"strings"
	"syscall"

	modernc "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/tapedeck/tapedeck"
)

// A dbError is an error of the database, as opposed to an error of a request.
type dbError struct{ err error }

func (e *dbError) Error() string { return e.err.Error() }
func (e *dbError) Unwrap() error { return e.err }

// code returns the primary result code of an error of the database, 0 for other
// errors.
func code(err error) int {
	var e *modernc.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// environmental reports whether err has a cause outside the store, such as a full or
// broken disk or a locked file. Then no request is to blame.
func environmental(err error) bool {
	switch code(err) {
	case codes.SQLITE_FULL, codes.SQLITE_IOERR, codes.SQLITE_BUSY, codes.SQLITE_LOCKED, codes.SQLITE_NOMEM,
		codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB,
		codes.SQLITE_PERM, codes.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// isDiskFault reports whether the disk is full, broken or read-only. Then the data
// can perhaps be read, and writing may work later.
func isDiskFault(err error) bool {
	switch code(err) {
	case codes.SQLITE_FULL, codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN, codes.SQLITE_READONLY:
		return true
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EIO)
}

// isFull reports whether a disk or a quota is used up.
func isFull(err error) bool {
	return code(err) == codes.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// unwritten returns the error that a caller gets when a commit failed. The message
// of the database is only for the operator's log.
func unwritten(err error) error {
	message, hint := "it could not be stored", "try again"
	switch code(err) {
	case codes.SQLITE_FULL:
		message, hint = "it could not be stored, there is no space left in the data folder", "make room and try again"
	case codes.SQLITE_IOERR:
		message, hint = "it could not be stored, the disk of the data folder reports an error", "look at the server's log and at the disk"
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		message, hint = "it could not be stored, another program keeps the database locked", "close that program and try again"
	case codes.SQLITE_READONLY, codes.SQLITE_PERM, codes.SQLITE_CANTOPEN:
		message, hint = "it could not be stored, the data folder cannot be written to", "look at its permissions"
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
		message, hint = "it could not be stored, the database is damaged", verifyHint
	}
	if errors.Is(err, errUncertain) {
		message = "it is not certain whether it was stored" + strings.TrimPrefix(message, "it could not be stored")
		hint += "; if you send it again with the same producer id, it is stored once"
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "%s", message).WithHint("%s", hint).Because(err)
}

const verifyHint = "stop the server and run `tapedeck verify`"

// unread returns the error that a caller gets when the database cannot be read.
func unread(err error) error {
	var e *dbError
	if !errors.As(err, &e) {
		return err
	}
	switch code(err) {
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
		return tapedeck.Errorf(tapedeck.Internal, "the database is damaged").WithHint(verifyHint).Because(err)
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the database cannot be read now").WithHint("try again").Because(err)
}

func errClosed() error { return tapedeck.Errorf(tapedeck.Unavailable, "the store is closed") }

func errNotFound(id string) error {
	return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", id)
}

func errGone(id string) error { return tapedeck.Errorf(tapedeck.Gone, "session %q was deleted", id) }
