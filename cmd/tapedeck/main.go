// Tapedeck is a self-hosted, durable session log for AI agents. This program is its
// server and its command line.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := untilSignal(context.Background())
	code := Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// A signalError is the cause of a context that a signal cancelled.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return e.signal.String() }

// untilSignal returns a context that the first of the signals cancels. A command that
// needs later signals registers for them itself.
func untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endSignals()...)
	go func() {
		select {
		case sig := <-signals:
			cancel(&signalError{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// endSignals returns the signals that end the program in good order: runs get their
// terminal events, and their agents are stopped. SIGHUP is sent when a terminal
// closes; a program that nohup started ignores it.
func endSignals() []os.Signal {
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
