package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
)

// encryptionVariable is the environment variable that says where the encryption key is.
const encryptionVariable = "TAPEDECK_ENCRYPTION_KEY"

// Limits of what says a key.
const (
	maxKeyText = 4096
	keyTimeout = time.Minute
)

// encryptionKey returns the master key that the flag or the environment names, nil if
// neither does.
func (e *env) encryptionKey(ctx context.Context) ([]byte, error) {
	from := "--encryption-key"
	where := e.encryption
	if where == "" {
		from, where = "$"+encryptionVariable, os.Getenv(encryptionVariable)
	}
	if where == "" {
		return nil, nil
	}
	return readMaster(ctx, from, where)
}

// readMaster reads a master key from where a user says that it is: FILE, env:NAME or
// cmd:COMMAND. No error has a part of the key.
func readMaster(ctx context.Context, from, where string) ([]byte, error) {
	if _, err := sessionkeys.ParseMaster(where); err == nil {
		return nil, usageError("%s takes the name of a file, env:NAME or cmd:COMMAND, and not the key itself, which other users of the machine could read", from)
	}
	text, err := keyText(ctx, where)
	if err != nil {
		return nil, usageError("%s: %w", from, err)
	}
	key, err := sessionkeys.ParseMaster(text)
	if err != nil {
		return nil, usageError("%s: what %s says is no key: %w; tapedeck key new makes one", from, placeOfKey(where), err)
	}
	return key, nil
}

// placeOfKey names where a key is, for people.
func placeOfKey(where string) string {
	switch {
	case strings.HasPrefix(where, "env:"):
		return "the variable " + strings.TrimPrefix(where, "env:")
	case strings.HasPrefix(where, "cmd:"):
		return "the command"
	}
	return "the file " + where
}

func keyText(ctx context.Context, where string) (string, error) {
	if name, ok := strings.CutPrefix(where, "env:"); ok {
		text := os.Getenv(name)
		if text == "" {
			return "", fmt.Errorf("the environment has no variable %q", name)
		}
		return text, nil
	}
	if command, ok := strings.CutPrefix(where, "cmd:"); ok {
		return keyOfCommand(ctx, command)
	}
	f, err := os.Open(where)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no file %s; tapedeck key new FILE makes one", where)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeyText))
	return string(b), err
}

// keyOfCommand returns what a command prints. The shell runs it, as it would run a line that
// the user types.
func keyOfCommand(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	shell := []string{"/bin/sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/c"}
	}
	c := exec.CommandContext(ctx, shell[0], shell[1], command)
	c.WaitDelay = time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, os.Stderr
	switch err := c.Run(); {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the command that prints the key does not end")
	case err != nil:
		return "", fmt.Errorf("the command that prints the key fails: %w", err)
	case out.Len() > maxKeyText:
		return "", fmt.Errorf("the command that prints the key prints %d bytes", out.Len())
	}
	return out.String(), nil
}

// errNoKeyGiven is the error of a command that needs a key.
func errNoKeyGiven() error {
	return tapedeck.Errorf(tapedeck.Invalid, "no encryption key is given").WithHint("give --encryption-key FILE, env:NAME or cmd:COMMAND, or set %s to one of them", encryptionVariable)
}
