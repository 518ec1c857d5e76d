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

// confirm asks the user before an action that cannot be undone. Without a terminal
// it returns an error, unless yes is set.
func (e *env) confirm(ctx context.Context, yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	in, ok := e.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usageError("this cannot be undone; pass --yes to confirm")
	}
	fmt.Fprintf(e.stderr, format+" [y/N] ", args...)
	answer := make(chan string, 1)
	go func() { // a read from a terminal cannot be interrupted; it may last until the program ends
		line, _ := bufio.NewReader(in).ReadString('\n') // the end of the input counts as no
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
	return &exitError{exitFailed, tapedeck.Errorf(tapedeck.Invalid, "nothing was changed")}
}
