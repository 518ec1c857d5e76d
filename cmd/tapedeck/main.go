// Tapedeck is the self-hosted durable session for AI agents: this program is
// its server and its command line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tapedeck/tapedeck"
)

// Exit codes.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitCancelled = 130
)

func main() {
	ctx, stop := untilEnding(context.Background())
	code := Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// An ending is the cause of a context that a signal has ended.
type ending struct{ signal os.Signal }

func (e *ending) Error() string { return e.signal.String() }

// untilEnding returns a context that the first of the signals ends; a command that
// wants to see further ones asks for them itself.
func untilEnding(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endings()...)
	go func() {
		select {
		case sig := <-signals:
			cancel(&ending{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// endings are the signals that end the program in good order: runs get their
// terminal events, and their agents end. SIGHUP comes when a terminal closes; a
// program that nohup started ignores it.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// Main runs the program with the given arguments and streams and returns its
// exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := &env{stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(env)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return env.exitCode(root.ExecuteContext(ctx))
}

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

// printError prints one sentence and a hint, or with --json what the HTTP API
// would answer.
func (e *env) printError(err error) {
	var te *tapedeck.Error
	known := errors.As(err, &te)
	if e.json {
		out := struct {
			Kind    tapedeck.Kind `json:"kind,omitempty"`
			Message string        `json:"message"`
			Hint    string        `json:"hint,omitempty"`
		}{Message: err.Error()}
		if known {
			out.Kind, out.Hint = te.Kind, te.Hint
		}
		b, _ := json.Marshal(map[string]any{"error": out}) // strings only
		fmt.Fprintf(e.stderr, "%s\n", escapeHidden(b))
		return
	}
	fmt.Fprintf(e.stderr, "tapedeck: %s\n", err)
	if known && te.Hint != "" {
		fmt.Fprintf(e.stderr, "  %s\n", te.Hint)
	}
}
