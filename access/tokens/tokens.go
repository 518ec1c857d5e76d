// Package tokens keeps the tokens of a file: their hashes, with who they are for. A change
// of the file counts within a second, also for streams that are open.
package tokens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/jwt"
)

// Prefix begins every token, so that people and scanners recognize one.
const Prefix = "td_"

const (
	secretBytes = 32        // of a token: nobody finds it by trying, so its hash needs no salt
	hashPrefix  = "sha256:" // begins a hash in the file
)

// A Token is an entry of the file. The token itself is not there, only its hash.
type Token struct {
	ID         string            `toml:"id" json:"id"`
	Hash       string            `toml:"hash" json:"-"`
	Subject    string            `toml:"subject" json:"subject"`
	Role       access.Role       `toml:"role" json:"role"`
	Prefix     string            `toml:"prefix,omitempty" json:"prefix,omitempty"`
	Labels     map[string]string `toml:"labels,omitempty" json:"labels,omitempty"`
	Session    string            `toml:"session,omitempty" json:"session,omitempty"`
	Invocation string            `toml:"invocation,omitempty" json:"invocation,omitempty"`
	Expires    time.Time         `toml:"expires,omitempty" json:"expires,omitzero"`
}

// identity returns the sender of requests with the token.
func (t *Token) identity() *access.Identity {
	return &access.Identity{
		Subject: t.Subject, Role: t.Role, Expires: t.Expires,
		Limits: access.Limits{Prefix: t.Prefix, Labels: t.Labels, Session: t.Session, Invocation: t.Invocation},
	}
}

// Check reports what is wrong with an entry.
func (t *Token) Check() error {
	if err := tapedeck.CheckID("the id of the token", t.ID); err != nil {
		return err
	}
	if sum, err := hex.DecodeString(strings.TrimPrefix(t.Hash, hashPrefix)); err != nil || len(sum) != sha256.Size || !strings.HasPrefix(t.Hash, hashPrefix) {
		return tapedeck.Errorf(tapedeck.Invalid, "the hash of token %s is not %s and 64 hexadecimal digits", t.ID, hashPrefix)
	}
	if err := t.identity().Check(); err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "token %s: %w", t.ID, err)
	}
	return nil
}

// hash returns the hash of a token as the file has it.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// generate returns a new token.
func generate() string {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // it never fails
	return Prefix + base64.RawURLEncoding.EncodeToString(secret)
}

// A File is the content of a file of tokens.
type File struct {
	JWT    *jwt.Config `toml:"jwt,omitempty"` // nil: no other tokens are accepted
	Tokens []Token     `toml:"token"`
}

// Parse reads the content of a file.
func Parse(b []byte) (File, error) {
	var f File
	meta, err := toml.Decode(string(b), &f)
	if err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return f, tapedeck.Errorf(tapedeck.Invalid, "line %d: %s", syntax.Position.Line, syntax.Message)
		}
		return f, tapedeck.Errorf(tapedeck.Invalid, "it is no TOML: %w", err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return f, tapedeck.Errorf(tapedeck.Invalid, "there is no setting %q", unknown[0].String())
	}
	ids, hashes := map[string]bool{}, map[string]bool{}
	for n := range f.Tokens {
		t := &f.Tokens[n]
		if err := t.Check(); err != nil {
			return f, err
		}
		if ids[t.ID] || hashes[t.Hash] {
			return f, tapedeck.Errorf(tapedeck.Invalid, "token %s is there twice", t.ID)
		}
		ids[t.ID], hashes[t.Hash] = true, true
	}
	return f, nil
}

// Options configure a set of tokens.
type Options struct {
	Path   string        // of the file
	Every  time.Duration // how often the file is looked at; 0 for a second
	Logger *slog.Logger  // nil for none
}

// A Set has the tokens of a file as of now.
type Set struct {
	options Options
	seen    stamp // of the file that was read last
	failed  string

	jwt *jwt.Config // as it was when the file was opened

	mu     sync.RWMutex
	byHash map[string]*held
}

// A held token has the means to end what it began.
type held struct {
	Token
	who    *access.Identity
	revoke context.CancelFunc
}

// A stamp changes when a file does.
type stamp struct {
	size     int64
	modified time.Time
}

// Open reads a file of tokens. Call [Set.Run] to notice its changes.
func Open(o Options) (*Set, error) {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Set{options: o, byHash: map[string]*held{}}
	f, at, err := s.read()
	if err != nil {
		return nil, err
	}
	s.seen, s.jwt = at, f.JWT
	s.take(f)
	if len(f.Tokens) == 0 && f.JWT == nil {
		o.Logger.Warn("the file of tokens has none, so nobody can use the server; tapedeck token create makes one", "file", o.Path)
	}
	return s, nil
}

// JWT returns the settings of JSON Web Tokens that the file had when it was opened, nil if
// it had none.
func (s *Set) JWT() *jwt.Config { return s.jwt }

func (s *Set) read() (File, stamp, error) {
	info, err := os.Stat(s.options.Path)
	if err != nil {
		return File{}, stamp{}, unreadable(s.options.Path, err)
	}
	b, err := os.ReadFile(s.options.Path)
	if err != nil {
		return File{}, stamp{}, unreadable(s.options.Path, err)
	}
	f, err := Parse(b)
	if err != nil {
		err = tapedeck.Errorf(tapedeck.Invalid, "%s: %w", s.options.Path, err)
	}
	return f, stamp{info.Size(), info.ModTime()}, err
}

func unreadable(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no file %s", path).WithHint("make the first token with: tapedeck token create --auth %s --subject admin --role admin", path)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be read: %w", path, err)
}

// Run looks at the file until ctx is done. A file that is deleted or has a fault changes
// nothing; the log says so.
func (s *Set) Run(ctx context.Context) {
	tick := time.NewTicker(s.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.Reload()
		}
	}
}

// Reload reads the file if it has changed.
func (s *Set) Reload() {
	info, err := os.Stat(s.options.Path)
	if err == nil && (stamp{info.Size(), info.ModTime()}) == s.seen {
		return
	}
	f, at, err := s.read()
	if err != nil {
		if text := err.Error(); text != s.failed {
			s.failed = text
			s.options.Logger.Error("the file of tokens cannot be used; the tokens that it had before stay valid", "error", err)
		}
		return
	}
	s.seen, s.failed = at, ""
	s.take(f)
	s.options.Logger.Info("the file of tokens was read again", "tokens", len(f.Tokens))
	if !reflect.DeepEqual(f.JWT, s.jwt) {
		s.options.Logger.Warn("the settings of JSON Web Tokens have changed, and count from the next start of the server on", "file", s.options.Path)
	}
}

// take makes the tokens of a file those that are valid. What others began ends.
func (s *Set) take(f File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]*held, len(f.Tokens))
	for _, t := range f.Tokens {
		if known := s.byHash[t.Hash]; known != nil && reflect.DeepEqual(known.Token, t) {
			next[t.Hash] = known
			continue
		}
		h := &held{Token: t, who: t.identity()}
		h.who.Revoked, h.revoke = context.WithCancel(context.Background())
		next[t.Hash] = h
	}
	old := s.byHash
	s.byHash = next
	for sum, h := range old {
		if next[sum] != h {
			h.revoke()
		}
	}
}

// Verify returns the identity of a token. It is nil without an error for a token of
// another kind.
func (s *Set) Verify(_ context.Context, token string) (*access.Identity, error) {
	if !strings.HasPrefix(token, Prefix) {
		return nil, nil
	}
	s.mu.RLock()
	h := s.byHash[hash(token)]
	s.mu.RUnlock()
	if h == nil {
		return nil, tapedeck.Errorf(tapedeck.Unauthorized, "the server does not know this token").WithHint("it may have been revoked; tapedeck token ls shows the tokens")
	}
	return h.who, h.who.Valid()
}

// sorted returns the tokens of a file, the newest last.
func sorted(list []Token) []Token {
	return slices.SortedStableFunc(slices.Values(list), func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
}
