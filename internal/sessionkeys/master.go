package sessionkeys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// KeySize is the size of a key in bytes: of the master key, and of the key of a session.
const KeySize = 32

// ErrForm says that a text is not a master key.
var ErrForm = errors.New("a master key is 32 random bytes, in base64 or as 64 hexadecimal digits")

// NewMaster returns a new master key in base64.
func NewMaster() string {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // it never fails
	return base64.StdEncoding.EncodeToString(key)
}

// ParseMaster reads a master key from a text, which may end with a newline. The error is
// [ErrForm], without any part of the text.
func ParseMaster(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if len(text) == hex.EncodedLen(KeySize) {
		if key, err := hex.DecodeString(text); err == nil {
			return key, nil
		}
	}
	text = strings.TrimRight(text, "=")
	for _, form := range [...]*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := form.DecodeString(text); err == nil && len(key) == KeySize {
			return key, nil
		}
	}
	return nil, ErrForm
}

// newAEAD returns AES-256-GCM with a random nonce of 12 bytes before each ciphertext. A key
// may encrypt 2^32 texts: a session never has that many.
func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != KeySize {
		return nil, ErrForm
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
