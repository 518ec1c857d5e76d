package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// Exit codes.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitCancelled = 130
)

// An exitError ends the program with a code and, if err is nil, without a word.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError marks an error of the command line itself.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode tells the user about err and turns it into a code.
func (e *env) exitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		if exit.err != nil {
			e.printError(exit.err)
		}
		return exit.code
	case errors.Is(err, context.Canceled):
		return exitCancelled
	case errors.Is(err, syscall.EPIPE):
		return exitDone // the reader of our output, such as head, has seen enough
	}
	e.printError(err)
	return exitFailed
}

// printError prints an error of the program, in the one form that it has: a
// sentence and, on the next line, a hint. With --json it prints the body that the
// HTTP API would answer, which has the kind, too.
func (e *env) printError(err error) {
	var known *tapedeck.Error
	errors.As(err, &known)
	if e.json {
		fmt.Fprintf(e.stderr, "%s\n", terminal.EscapeHidden(errorBody(err, known)))
		return
	}
	e.notice("%s", terminal.Clean(err.Error()))
	if known != nil && known.Hint != "" {
		fmt.Fprintf(e.stderr, "  %s\n", terminal.Clean(known.Hint))
	}
}

// errorBody returns the JSON of an error; known is nil if it has no kind.
func errorBody(err error, known *tapedeck.Error) []byte {
	var body struct {
		Error struct {
			Kind    tapedeck.Kind `json:"kind,omitempty"`
			Message string        `json:"message"`
			Hint    string        `json:"hint,omitempty"`
		} `json:"error"`
	}
	body.Error.Message = err.Error()
	if known != nil {
		body.Error.Kind, body.Error.Hint = known.Kind, known.Hint
	}
	b, _ := json.Marshal(body) // it has strings only
	return b
}

// notice prints a line about what the program does, beside its output.
func (e *env) notice(format string, args ...any) {
	fmt.Fprintf(e.stderr, "tapedeck: "+format+"\n", args...)
}
