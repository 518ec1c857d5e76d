package subscription

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/keyfile"
)

// KeyFile is the name of the file in the data folder that has the keys.
const KeyFile = "webhook-keys.json"

// keptFor is how long the public part of a key stays published after the key was
// replaced. It is longer than any receiver accepts an old signature, and as long as a
// token lives.
const keptFor = 24 * time.Hour

// A key signs webhooks and tokens.
type key struct {
	ID      string    `json:"kid"`
	Seed    []byte    `json:"seed"` // of the Ed25519 key
	Created time.Time `json:"created"`
	Retired time.Time `json:"retired,omitzero"` // when another key replaced it
}

func (k *key) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.Seed) }

func (k *key) public() string {
	return base64.RawURLEncoding.EncodeToString(k.private().Public().(ed25519.PublicKey))
}

// A keyring has the keys: the newest is last and signs. They are created when they are
// first needed.
type keyring struct {
	file string // "" keeps them in memory only
	now  func() time.Time

	mu   sync.Mutex
	keys []key
}

// keysIn returns the keys of a data folder, or keys in memory for the folder "". They are
// created when they are first needed.
func keysIn(folder string, now func() time.Time) *keyring {
	k := &keyring{now: now}
	if folder != "" {
		k.file = filepath.Join(folder, KeyFile)
	}
	return k
}

// active returns the key that signs.
func (r *keyring) active() (key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return key{}, err
	}
	if len(r.keys) == 0 {
		if err := r.add(); err != nil {
			return key{}, err
		}
	}
	return r.keys[len(r.keys)-1], nil
}

// find returns the key with an id, if it may still be used for checks.
func (r *keyring) find(id string) (key, bool) {
	for _, k := range r.all() {
		if k.ID == id {
			return k, true
		}
	}
	return key{}, false
}

// all returns the keys whose signatures receivers should accept. It creates none.
func (r *keyring) all() []key {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.load() != nil {
		return nil
	}
	return r.fresh()
}

func (r *keyring) fresh() []key {
	now := r.now()
	return slices.DeleteFunc(slices.Clone(r.keys), func(k key) bool {
		return !k.Retired.IsZero() && now.Sub(k.Retired) > keptFor
	})
}

// rotate makes a new key sign from now on.
func (r *keyring) rotate() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return err
	}
	return r.add()
}

// add adds a key. Requires r.mu.
func (r *keyring) add() error {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // it never fails
	k := key{Seed: seed, Created: r.now().UTC().Truncate(time.Second)}
	// The thumbprint of RFC 7638: the hash of the members that a key of this type must
	// have, in the order of their names.
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + k.public() + `"}`))
	k.ID = "ds_" + base64.RawURLEncoding.EncodeToString(sum[:])
	keys := r.fresh()
	if n := len(keys); n > 0 && keys[n-1].Retired.IsZero() {
		keys[n-1].Retired = k.Created
	}
	keys = append(keys, k)
	if err := r.save(keys); err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the key for webhooks cannot be stored").
			WithHint("look at the permissions of the data folder and at the disk").Because(err)
	}
	r.keys = keys
	return nil
}

// load reads the file, once. Requires r.mu.
func (r *keyring) load() error {
	if r.file == "" || r.keys != nil {
		return nil
	}
	b, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var keys []key
	if err == nil {
		err = json.Unmarshal(b, &keys)
	}
	for i := range keys {
		if len(keys[i].Seed) != ed25519.SeedSize || keys[i].ID == "" {
			err = errors.New("a key has another size, or no id")
		}
	}
	if err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the keys for webhooks cannot be read from %s", KeyFile).
			WithHint("look at the file in the data folder; if you delete it, the server creates a new key").Because(err)
	}
	r.keys = keys
	return nil
}

// save replaces the file. After a crash it has the old keys or the new ones.
func (r *keyring) save(keys []key) error {
	if r.file == "" {
		return nil
	}
	b, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		return err
	}
	return keyfile.Write(r.file, append(b, '\n'))
}
