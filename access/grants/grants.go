// Package grants makes and verifies the tokens of one session, which a server gives to the
// browser of a user, to an agent that runs elsewhere, or to a reader of a shared session. A
// token is signed, so nothing is stored for it; only a revocation is.
package grants

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/internal/keyfile"
	"github.com/tapedeck/tapedeck/internal/ownfile"
)

// Prefix begins every token, IDPrefix the id of every token.
const (
	Prefix   = "tds_"
	IDPrefix = "grant_"
)

// The files in the data folder.
const (
	KeyFile     = "access.key"   // the secret that signs
	RevokedFile = "revoked.json" // what was revoked and has not expired
	NamedFile   = "named.json"   // the tokens that have a name, without the tokens themselves
	keySize     = sha256.Size    // bytes
	maxLive     = 100_000        // tokens in use at once; a revocation ends the streams of these
	maxNamed    = 1000           // tokens with a name of one session
)

// MaxLife is how long a token is valid at most: a year, also one with a leap day.
const MaxLife = 366 * 24 * time.Hour

// A Grant is the content of a token.
type Grant struct {
	ID         string      `json:"id"`
	Subject    string      `json:"sub"`
	Role       access.Role `json:"role"`
	Session    string      `json:"ses"`
	Gen        int64       `json:"gen"` // of the session
	Forks      bool        `json:"forks,omitempty"`
	Invocation string      `json:"inv,omitempty"`
	Before     int64       `json:"before,omitempty"`
	Issued     int64       `json:"iat"`            // milliseconds since 1970
	Expires    int64       `json:"exp"`            // seconds since 1970
	Payer      string      `json:"pay,omitempty"`  // whose quota it uses; "" for Subject
	By         string      `json:"by"`             // the subject who issued it
	With       string      `json:"with,omitempty"` // the token that issued it, see [access.Identity]; "" if no verifier keeps that token
	Name       string      `json:"-"`              // for people; a token with a name is listed
}

func (g *Grant) identity() *access.Identity {
	return &access.Identity{
		Subject: g.Subject, Role: g.Role, Payer: g.Payer, Expires: time.Unix(g.Expires, 0),
		Limits: access.Limits{Session: g.Session, Gen: g.Gen, Forks: g.Forks, Invocation: g.Invocation, Before: g.Before},
	}
}

// An Issuer signs and verifies tokens. Its methods may be called by several goroutines.
type Issuer struct {
	// Kept returns a context that is done when a token that issued others is no longer kept,
	// by its name in [access.Identity]; nil if it is not kept now. Then the others are not valid
	// either, and their streams end. Set it before the first token is used.
	Kept func(token string) context.Context

	dir string // "" keeps everything in memory
	key []byte

	mu      sync.Mutex
	revoked revoked
	named   map[int64][]Named // by Gen, oldest first
	live    map[string]*live  // by id
}

// Key returns a key for another purpose, derived from the one that signs.
func (i *Issuer) Key(purpose string) []byte {
	mac := hmac.New(sha256.New, i.key)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// tableForm is how RevokedFile and NamedFile begin: the latter has a list for each Gen.
var tableForm = regexp.MustCompile(`^\{($|\}|"tokens":|"\d+":)`)

// Open returns the issuer of a data folder; "" keeps its key in memory.
func Open(dir string) (*Issuer, error) {
	i := &Issuer{
		Kept: func(string) context.Context { return nil },
		dir:  dir, live: map[string]*live{}, named: map[int64][]Named{},
		revoked: revoked{Tokens: map[string]int64{}, Sessions: map[int64]int64{}, By: map[string]int64{}},
	}
	if err := i.loadKey(); err != nil {
		return nil, err
	}
	if dir == "" {
		return i, nil
	}
	isTable := func(beginning []byte) bool { return tableForm.Match(beginning) }
	if err := cmp.Or(ownfile.Check(filepath.Join(dir, NamedFile), isTable), ownfile.Check(filepath.Join(dir, RevokedFile), isTable)); err != nil {
		return nil, err
	}
	i.loadNamed()
	b, err := os.ReadFile(filepath.Join(dir, RevokedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &i.revoked)
	}
	if err != nil { // without it revoked tokens would be valid again
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the file %s cannot be used: %w", RevokedFile, err).
			WithHint("remove it together with %s: then all tokens of sessions are invalid", KeyFile)
	}
	return i, nil
}

func (i *Issuer) loadKey() error {
	path := filepath.Join(i.dir, KeyFile)
	if i.dir != "" {
		b, err := os.ReadFile(path)
		switch {
		case err == nil && len(b) == keySize:
			i.key = b
			return nil
		case err == nil:
			return tapedeck.Errorf(tapedeck.Invalid, "the file %s has %d bytes, and a key has %d", KeyFile, len(b), keySize).
				WithHint("remove it: then all tokens of sessions are invalid")
		case !errors.Is(err, fs.ErrNotExist):
			return tapedeck.Errorf(tapedeck.Invalid, "the key of the tokens of sessions cannot be read: %w", err)
		}
	}
	i.key = make([]byte, keySize)
	_, _ = rand.Read(i.key) // it never fails
	if i.dir == "" {
		return nil
	}
	if err := keyfile.Write(path, i.key); err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the key of the tokens of sessions cannot be stored: %w", err)
	}
	return nil
}

// Roles returns the roles that a token of a session can have.
func Roles() []access.Role { return []access.Role{access.Reader, access.User, access.Agent} }

// Sign sets ID and Issued of a grant and returns its token.
func (i *Issuer) Sign(g *Grant) (string, error) {
	now := time.Now()
	switch life := time.Unix(g.Expires, 0).Sub(now); {
	case life <= 0:
		return "", tapedeck.Errorf(tapedeck.Invalid, "the token would have expired already")
	case life > MaxLife:
		return "", tapedeck.Errorf(tapedeck.Invalid, "a token of a session is valid for %d days at most", MaxLife/(24*time.Hour))
	}
	if err := cmp.Or(g.Role.Check("a token of a session", Roles()...), g.identity().Check()); err != nil {
		return "", err
	}
	g.Issued = now.UnixMilli()
	g.ID = i.newID(g.Gen, g.Expires)
	b, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	if err := i.remember(g); err != nil {
		return "", err
	}
	body := base64.RawURLEncoding.EncodeToString(b)
	return Prefix + body + "." + base64.RawURLEncoding.EncodeToString(i.mac(body)), nil
}

func (i *Issuer) mac(body string) []byte { return i.sum("token of a session\n" + body) }

func (i *Issuer) sum(text string) []byte {
	m := hmac.New(sha256.New, i.key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// The parts of the id of a token have this between them: a random part, when it expires, and
// what proves that this server made it for the session. So an id that was never one costs no
// memory, and a revocation is kept for as long as it is needed.
const idSeparator = "."

func (i *Issuer) newID(gen, expires int64) string {
	id := tapedeck.NewID(IDPrefix) + idSeparator + strconv.FormatInt(expires, 36)
	return id + idSeparator + i.proof(gen, id)
}

// proofSize is how many bytes of a hash prove that an id is one.
const proofSize = 12

func (i *Issuer) proof(gen int64, id string) string {
	return base64.RawURLEncoding.EncodeToString(i.sum("id of a token\n" + nameOf(gen, id))[:proofSize])
}

// expiryOf returns when the token of an id expires, in seconds since 1970. It reports false
// for an id that this server did not make for the session.
func (i *Issuer) expiryOf(gen int64, id string) (int64, bool) {
	at := strings.LastIndex(id, idSeparator)
	if at < 0 || !hmac.Equal([]byte(id[at+1:]), []byte(i.proof(gen, id[:at]))) {
		return 0, false
	}
	_, text, _ := strings.Cut(id[:at], idSeparator)
	expires, err := strconv.ParseInt(text, 36, 64)
	return expires, err == nil
}

// strict refuses another spelling of the same bytes.
var strict = base64.RawURLEncoding.Strict()

// Verify returns the identity of a token. It is nil without an error for a token of
// another kind.
func (i *Issuer) Verify(_ context.Context, token string) (*access.Identity, error) {
	rest, ok := strings.CutPrefix(token, Prefix)
	if !ok {
		return nil, nil
	}
	wrong := tapedeck.Errorf(tapedeck.Unauthorized, "the token is not valid")
	body, sum, _ := strings.Cut(rest, ".")
	got, err := strict.DecodeString(sum)
	if err != nil || strings.ContainsAny(rest, "\r\n") || !hmac.Equal(got, i.mac(body)) {
		return nil, wrong
	}
	b, err := strict.DecodeString(body)
	var g Grant
	if err != nil || json.Unmarshal(b, &g) != nil {
		return nil, wrong
	}
	who, err := i.use(&g)
	if err != nil {
		return nil, err
	}
	return who, who.Valid()
}
