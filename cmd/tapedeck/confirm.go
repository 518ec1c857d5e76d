package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
)

// confirm asks before something that cannot be undone. A program that cannot be
// asked has to say --yes.
func (e *env) confirm(ctx context.Context, yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	in, ok := e.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usageError("this cannot be undone: say --yes if it is meant")
	}
	fmt.Fprintf(e.stderr, format+" [y/N] ", args...)
	answer := make(chan string, 1)
	go func() { // nothing ends a read of a terminal, so it may end with the program
		line, _ := bufio.NewReader(in).ReadString('\n') // an end of the input is no yes
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(e.stderr)
		return ctx.Err()
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
	}
	return &exitError{exitFailed, tapedeck.Errorf(tapedeck.Invalid, "nothing was done")}
}
