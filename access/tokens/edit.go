package tokens

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/tapedeck/tapedeck"
)

// Create adds a token to a file, which is created if there is none, and returns the token.
// It is shown this once. Comments of the file stay.
func Create(path string, t Token) (made Token, secret string, err error) {
	b, _, err := load(path)
	if err != nil {
		return t, "", err
	}
	if err := cmp.Or(t.checkRole(), t.identity().Check()); err != nil { // without the id of a token that will not exist
		return t, "", err
	}
	secret = generate()
	t.ID, t.Hash = tapedeck.NewID("tok_"), hash(secret)
	if err := t.Check(); err != nil {
		return t, "", err
	}
	var block bytes.Buffer
	enc := toml.NewEncoder(&block)
	enc.Indent = ""
	if err := enc.Encode(File{Tokens: []Token{t}}); err != nil {
		return t, "", err
	}
	if len(b) > 0 && !bytes.HasSuffix(b, []byte("\n")) {
		b = append(b, '\n')
	}
	if len(b) > 0 {
		b = append(b, '\n')
	}
	b = append(b, bytes.TrimLeft(block.Bytes(), "\n")...)
	if _, err := Parse(b); err != nil { // such as an id that is there twice
		return t, "", err
	}
	return t, secret, store(path, b)
}

// List returns the tokens of a file, the newest last.
func List(path string) ([]Token, error) {
	b, found, err := load(path)
	if err == nil && !found {
		err = unreadable(path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	f, err := Parse(b)
	return sorted(f.Tokens), err
}

// Revoke removes a token from a file.
func Revoke(path, id string) error {
	b, found, err := load(path)
	if err == nil && !found {
		err = unreadable(path, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	before, err := Parse(b)
	if err != nil {
		return err
	}
	var kept []string
	for _, part := range blocks(string(b)) {
		if f, err := Parse([]byte(part)); err == nil && len(f.Tokens) == 1 && f.Tokens[0].ID == id {
			continue
		}
		kept = append(kept, part)
	}
	left := strings.Join(kept, "")
	after, err := Parse([]byte(left))
	switch {
	case err != nil:
		return err
	case len(after.Tokens) == len(before.Tokens):
		return tapedeck.Errorf(tapedeck.NotFound, "there is no token %.128q in %s", id, path).WithHint("tapedeck token ls lists the tokens")
	case len(after.Tokens) != len(before.Tokens)-1:
		return tapedeck.Errorf(tapedeck.Invalid, "%s is not written so that one token can be removed", path).WithHint("remove it with an editor")
	}
	if isBlank([]byte(left)) { // a server takes an empty file for a mistake
		left = "# All tokens were revoked.\n"
	}
	return store(path, []byte(left))
}

// blocks divides a file before each line that begins a table of a token.
func blocks(text string) (parts []string) {
	begin, at := 0, 0
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(name, "[") && !strings.HasPrefix(name, "[token.") && at > begin {
			parts = append(parts, text[begin:at])
			begin = at
		}
		at += len(line)
	}
	return append(parts, text[begin:])
}

// load reads a file. A file that is not there is empty.
func load(path string) (b []byte, found bool, err error) {
	b, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, unreadable(path, err)
	}
	if _, err := Parse(b); err != nil {
		return nil, true, malformed(path, err)
	}
	return b, true, nil
}

// store replaces a file at once, so that a server never reads half of it.
func store(path string, b []byte) error {
	if err := inFolder(path); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-*") // only its owner can read it
	if err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "%s cannot be written: %w", path, err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return tapedeck.Errorf(tapedeck.Unavailable, "%s cannot be written: %w", path, err)
	}
	return nil
}
