package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
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

// An exitError ends the program with a code. If err is nil, it prints nothing.
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

// usageError returns an error of the command line itself.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode prints err, if there is one, and returns the exit code.
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
		return exitDone // the reader of the output, such as head, has closed it
	}
	e.printError(err)
	return exitFailed
}

// printError prints an error: a sentence and, on the next line, a hint. With --json it
// prints the same body as the HTTP API, which also has the kind. It is the only
// function that prints errors of the program.
func (e *env) printError(err error) {
	var known *tapedeck.Error
	errors.As(err, &known)
	if known != nil {
		here := *known
		here.Hint = localHint(known)
		if e.elsewhere && lacksAgent.MatchString(known.Message) {
			here.Hint = strings.TrimPrefix(here.Hint+"; the server reads its configuration only when it starts: restart it after a change of its agents", "; ")
		}
		known = &here
	}
	if e.json {
		fmt.Fprintf(e.stderr, "%s\n", terminal.EscapeHidden(errorBody(err, known)))
		return
	}
	e.notice("%s", terminal.Clean(err.Error()))
	if known == nil {
		return
	}
	if known.Hint != "" {
		fmt.Fprintf(e.stderr, "  %s\n", terminal.Clean(known.Hint))
	}
	if len(known.Problems) > 1 { // the message has the only one
		for i := range known.Problems {
			fmt.Fprintf(e.stderr, "  %s\n", terminal.VisibleLine(problemLine(&known.Problems[i])))
		}
	}
}

// lacksAgent matches the errors about an agent that a server does not know.
var lacksAgent = regexp.MustCompile(`\b(there is no agent|this server has no agents)\b`)

// localHint returns the hint of an error in the words of the command line: those of the server
// are about requests.
func localHint(e *tapedeck.Error) string {
	switch {
	case e.Kind == tapedeck.Unauthorized:
		return "set " + tokenVariable + " to a valid token; see: tapedeck token --help"
	case e.Kind == tapedeck.NotFound && e.Hint == "" && strings.HasPrefix(e.Message, "there is no session "):
		return "list sessions with: tapedeck ls"
	case strings.HasPrefix(e.Hint, "name one of them: "): // of the open runs
		return strings.Replace(e.Hint, "them:", "them with --invocation:", 1)
	}
	return inCommands.Replace(e.Hint)
}

// inCommands replaces what a hint of the server says about requests.
var inCommands = strings.NewReplacer(
	"with when=queue", "with `tapedeck say --when queue`",
	"POST /sessions/{id}/permissions/{permission}", "tapedeck answer",
	"such as PATCH, DELETE and close", "such as tapedeck rename, delete and close",
)

// problemLine describes what is wrong in one place of a document.
func problemLine(p *tapedeck.Problem) string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Element != "" {
		fmt.Fprintf(&b, "%s", p.Element)
		if p.Name != "" {
			fmt.Fprintf(&b, " (%s)", p.Name)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// errorBody returns the JSON of an error; known is nil if it has no kind.
func errorBody(err error, known *tapedeck.Error) []byte {
	var body struct {
		Error struct {
			Kind    tapedeck.Kind `json:"kind,omitempty"`
			Message string        `json:"message"`
			Hint    string        `json:"hint,omitempty"`

			Problems []tapedeck.Problem `json:"problems,omitempty"`
		} `json:"error"`
	}
	body.Error.Message = err.Error()
	if known != nil {
		body.Error.Kind, body.Error.Hint, body.Error.Problems = known.Kind, known.Hint, known.Problems
	}
	b, _ := json.Marshal(body) // it has strings and numbers only
	return b
}

// notice prints a line for the user to standard error.
func (e *env) notice(format string, args ...any) {
	fmt.Fprintf(e.stderr, "tapedeck: "+format+"\n", args...)
}
