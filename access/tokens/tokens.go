// Package tokens keeps the tokens of a file: their hashes, with who they are for. A change
// of the file counts within a second, also for streams that are open.
package tokens

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/jwt"
	"github.com/tapedeck/tapedeck/access/oidc"
	"github.com/tapedeck/tapedeck/access/quota"
	"github.com/tapedeck/tapedeck/internal/tomltype"
)

// Prefix begins every token, so that people and scanners recognize one.
const Prefix = "td_"

const (
	secretBytes = 32        // of a token: nobody finds it by trying, so its hash needs no salt
	hashPrefix  = "sha256:" // begins a hash in the file
)

// A Token is an entry of the file. The token itself is not there, only its hash.
type Token struct {
	ID      string            `toml:"id" json:"id"`
	Hash    string            `toml:"hash" json:"-"`
	Subject string            `toml:"subject" json:"subject"`
	Role    access.Role       `toml:"role" json:"role"`
	Prefix  string            `toml:"prefix,omitempty" json:"prefix,omitempty"`
	Labels  map[string]string `toml:"labels,omitempty" json:"labels,omitempty"`
	Expires time.Time         `toml:"expires,omitempty" json:"expires,omitzero"`
}

// identity returns the sender of requests with the token.
func (t *Token) identity() *access.Identity {
	return &access.Identity{
		Subject: t.Subject, Role: t.Role, Expires: t.Expires, Token: t.name(),
		Limits: access.Limits{Prefix: t.Prefix, Labels: t.Labels},
	}
}

// name names the token in tokens of sessions that are made with it. All that says what it may
// do is in the name, so one that is changed is another token. When it expires is not: what was
// made with it has an end of its own.
func (t *Token) name() string {
	b, _ := json.Marshal([]any{t.ID, t.Hash, t.Subject, t.Role, t.Prefix, t.Labels}) // it never fails; the labels are sorted
	sum := sha256.Sum256(b)
	return t.ID + "." + base64.RawURLEncoding.EncodeToString(sum[:nameSize])
}

// nameSize is how many bytes of a hash are in the name of a token.
const nameSize = 12

// Check reports what is wrong with an entry.
func (t *Token) Check() error {
	if err := t.checkRole(); err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "token %s: %w", t.ID, err)
	}
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

// fileRoles are the roles of the tokens of a file.
var fileRoles = []access.Role{access.Admin, access.User, access.Reader}

// checkRole refuses the role of an agent, and what is no role. A token of one run, or of one session, must name a
// session that exists, not one that gets its id later, so the server makes it.
func (t *Token) checkRole() error {
	if t.Role != access.Agent {
		return t.Role.Check("a token of the file", fileRoles...)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the file of tokens has no tokens of agents").
		WithHint("its roles are admin, user, reader; the server makes the token of a run: tapedeck token issue SESSION --role agent --run INVOCATION")
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
	JWT    *jwt.Config   `toml:"jwt,omitempty"`   // nil: no other tokens are accepted
	OIDC   *oidc.Config  `toml:"oidc,omitempty"`  // nil: people log in with a token only
	Quota  *quota.Config `toml:"quota,omitempty"` // nil: nothing is limited
	Tokens []Token       `toml:"token"`
}

// Parse reads the content of a file.
func Parse(b []byte) (File, error) {
	var f File
	if m := tomltype.Find(b, &f); m != nil { // the parser ignores a list of labels, so it would limit nothing
		return f, mistyped(m, b)
	}
	meta, err := toml.Decode(string(b), &f)
	if err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return f, tapedeck.Errorf(tapedeck.Invalid, "line %d: %s", syntax.Position.Line, syntax.Message)
		}
		return f, tapedeck.Errorf(tapedeck.Invalid, "it is no TOML: %w", err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return f, unknownSetting(unknown[0].String(), tomltype.LineOf(b, unknown[0]))
	}
	if f.Quota != nil {
		if err := f.Quota.Check(); err != nil {
			return f, err
		}
	}
	ids, hashes := map[string]bool{}, map[string]bool{}
	for n := range f.Tokens {
		t := &f.Tokens[n]
		if t.ID == "" {
			return f, tapedeck.Errorf(tapedeck.Invalid, "token %d of the file has no id", n+1)
		}
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

// mistyped returns the error of a value of the wrong type.
func mistyped(m *tomltype.Mismatch, text []byte) error {
	of := ""
	if id, _ := m.Entry["id"].(string); tapedeck.CheckID("the id", id) == nil {
		of = " of the token " + id
	}
	return tapedeck.Errorf(tapedeck.Invalid, "line %d: %s%s %s", m.Line(text), m.Setting, of, m)
}

func unknownSetting(name string, line int) error {
	err := tapedeck.Errorf(tapedeck.Invalid, "line %d: there is no setting %q", line, name)
	if name == "token.session" || name == "token.invocation" {
		return err.WithHint("remove that token: the server makes those of one session, with tapedeck token issue SESSION")
	}
	return err
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
	changes func(t Token, removed bool) // nil for nothing

	jwt    *jwt.Config  // as it was when the file was opened
	oidc   *oidc.Config // likewise
	quotas atomic.Pointer[quota.Config]

	mu     sync.RWMutex
	byHash map[string]*held
	byName map[string]*named // see [Token.name]
}

// A held token has the means to end what it began.
type held struct {
	Token
	who    *access.Identity
	revoke context.CancelFunc
}

// A named token is kept while the file has it, whenever it expires.
type named struct {
	kept context.Context
	end  context.CancelFunc
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
	if len(f.Tokens) == 0 && f.JWT == nil && f.OIDC == nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "%s has no token and no settings of an identity provider, so nobody could use the server", o.Path).
			WithHint("make the first token with: tapedeck token create --auth %s --subject admin --role admin", o.Path)
	}
	s.seen, s.jwt, s.oidc = at, f.JWT, f.OIDC
	s.take(f)
	return s, nil
}

// JWT returns the settings of JSON Web Tokens that the file had when it was opened, nil if
// it had none.
func (s *Set) JWT() *jwt.Config { return s.jwt }

// OIDC returns the settings of log-ins at an identity provider that the file had when it
// was opened, nil if it had none.
func (s *Set) OIDC() *oidc.Config { return s.oidc }

// Quotas returns the limits of an account, as the file has them now.
func (s *Set) Quotas(k quota.Key) quota.Limits { return s.quotas.Load().Of(k) }

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
		err = malformed(s.options.Path, err)
	} else if isBlank(b) && len(s.byHash) > 0 {
		err = tapedeck.Errorf(tapedeck.Invalid, "%s is empty", s.options.Path).WithHint("to revoke all tokens, leave a comment in it, as tapedeck token revoke does")
	}
	return f, stamp{info.Size(), info.ModTime()}, err
}

// unreadable returns the error of a file that cannot be read.
func unreadable(path string, err error) error {
	if err := inFolder(path); err != nil {
		return err
	}
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		return tapedeck.Errorf(tapedeck.Invalid, "%s is a folder", path).WithHint("name a file in it, such as %s", filepath.Join(path, "auth.toml"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no file %s", path).WithHint("make the first token with: tapedeck token create --auth %s --subject admin --role admin", path)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be read: %w", path, err).WithHint("the user of this program needs the right to read it")
}

// inFolder returns an error if the folder of a file does not exist.
func inFolder(path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no folder %s for the file %s", dir, filepath.Base(path)).
			WithHint("make the folder, or name a file in another one")
	}
	return nil
}

// malformed returns the error of a file that has something else than tokens. err says what.
func malformed(path string, err error) error {
	hint := "it is TOML, as tapedeck token create writes it; docs/security.md has all settings"
	if e := (*tapedeck.Error)(nil); errors.As(err, &e) && e.Hint != "" {
		hint = e.Hint
	}
	return tapedeck.Errorf(tapedeck.Invalid, "%s is no file of tokens: %w", path, err).WithHint("%s", hint)
}

// isBlank reports whether a file has nothing at all, not even a comment. Then it is more
// likely that somebody is about to write it, or that a disk was full, than that all tokens
// were revoked.
func isBlank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

// Run looks at the file until ctx is done. A file that is deleted, empty or has a fault changes
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
	s.tell(f.Tokens)
	s.take(f)
	s.options.Logger.Info("the file of tokens was read again", "tokens", len(f.Tokens))
	if !reflect.DeepEqual(f.JWT, s.jwt) || !reflect.DeepEqual(f.OIDC, s.oidc) {
		s.options.Logger.Warn("the settings of the identity provider have changed, and count from the next start of the server on", "file", s.options.Path)
	}
}

// Changes makes use learn of each token that is added to the file, or removed from it. Call it
// before [Set.Run].
func (s *Set) Changes(use func(t Token, removed bool)) { s.changes = use }

// tell tells what differs between the tokens of the file and those that count. A token that
// was changed is removed, then added.
func (s *Set) tell(now []Token) {
	if s.changes == nil {
		return
	}
	next := make(map[string]*Token, len(now))
	for i := range now {
		next[now[i].Hash] = &now[i]
	}
	for sum, h := range s.byHash {
		if t := next[sum]; t == nil || !reflect.DeepEqual(h.Token, *t) {
			s.changes(h.Token, true)
		}
	}
	for i := range now {
		if known := s.byHash[now[i].Hash]; known == nil || !reflect.DeepEqual(known.Token, now[i]) {
			s.changes(now[i], false)
		}
	}
}

// take makes the tokens and the quotas of a file those that count. What other tokens began
// ends.
func (s *Set) take(f File) {
	s.quotas.Store(f.Quota)
	s.mu.Lock()
	defer s.mu.Unlock()
	next, names := make(map[string]*held, len(f.Tokens)), make(map[string]*named, len(f.Tokens))
	for _, t := range f.Tokens {
		h := s.byHash[t.Hash]
		if h == nil || !reflect.DeepEqual(h.Token, t) {
			h = &held{Token: t, who: t.identity()}
			h.who.Revoked, h.revoke = context.WithCancel(context.Background())
		}
		n := s.byName[h.who.Token]
		if n == nil {
			n = &named{}
			n.kept, n.end = context.WithCancel(context.Background())
		}
		next[t.Hash], names[h.who.Token] = h, n
	}
	old, oldNames := s.byHash, s.byName
	s.byHash, s.byName = next, names
	for sum, h := range old {
		if next[sum] != h {
			h.revoke()
		}
	}
	for name, n := range oldNames {
		if names[name] == nil {
			n.end()
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

// Kept implements [gate.Keeper].
//
// [gate.Keeper]: https://pkg.go.dev/github.com/tapedeck/tapedeck/access/gate#Keeper
func (s *Set) Kept(token string) context.Context {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := s.byName[token]; n != nil {
		return n.kept
	}
	return nil
}

// sorted returns the tokens of a file, the newest last.
func sorted(list []Token) []Token {
	return slices.SortedStableFunc(slices.Values(list), func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
}
