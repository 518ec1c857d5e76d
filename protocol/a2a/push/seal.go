package push

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/keyfile"
)

// KeyFile is the name of the file in the data folder that has the key of the configs.
const KeyFile = "push-key"

// A sealer encrypts configs, which have secrets of clients: a copy of the database does not
// have them. It creates its key when that is first needed.
type sealer struct {
	file string // "" keeps the key in memory only

	mu   sync.Mutex
	aead cipher.AEAD // nil: the key was not read yet
}

func sealerIn(folder string) *sealer {
	if folder == "" {
		return new(sealer)
	}
	return &sealer{file: filepath.Join(folder, KeyFile)}
}

// errNoKey is the error of a config that was sealed with another key.
var errNoKey = errors.New("it was stored with another key")

// seal encrypts the config of a task.
func (s *sealer) seal(k key, c *Config) ([]byte, error) {
	aead, err := s.cipher()
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	_, _ = rand.Read(nonce) // it never fails
	return aead.Seal(nonce, nonce, plain, k.bytes()), nil
}

// open is the inverse of seal. It opens a config only for the task and the id for which it
// was sealed.
func (s *sealer) open(k key, sealed []byte) (*Config, error) {
	aead, err := s.cipher()
	if err != nil {
		return nil, err
	}
	n := aead.NonceSize()
	if len(sealed) < n {
		return nil, errNoKey
	}
	plain, err := aead.Open(nil, sealed[:n], sealed[n:], k.bytes())
	if err != nil {
		return nil, errNoKey
	}
	c := new(Config)
	return c, json.Unmarshal(plain, c)
}

// bytes returns the key of a config so that no two keys have the same.
func (k *key) bytes() []byte { return fmt.Appendf(nil, "%d/%s/%s", k.gen, k.task, k.id) }

// cipher returns the cipher with the key.
func (s *sealer) cipher() (cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.aead != nil {
		return s.aead, nil
	}
	secret, err := s.secret()
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the key of the push notification configs cannot be read or stored").
			WithHint("look at the file %s in the data folder; if you delete it, configs that clients have set are lost", KeyFile).Because(err)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	s.aead, err = cipher.NewGCM(block)
	return s.aead, err
}

const secretSize = 32 // bytes: AES-256

// secret reads the key, or creates one.
func (s *sealer) secret() ([]byte, error) {
	if s.file != "" {
		b, err := os.ReadFile(s.file)
		if err == nil {
			b, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
			if err == nil && len(b) != secretSize {
				err = errors.New("the key has another size")
			}
			return b, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // it never fails
	if s.file == "" {
		return secret, nil
	}
	return secret, keyfile.Write(s.file, []byte(base64.StdEncoding.EncodeToString(secret)+"\n"))
}
