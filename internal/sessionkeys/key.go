package sessionkeys

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
)

// ErrNotSealed says that bytes were not encrypted with this key for this place, or have
// changed since.
var ErrNotSealed = errors.New("its bytes were not encrypted with the key of the session")

// A Key encrypts what one session has. It can be used by several goroutines.
type Key struct {
	id   ID
	aead cipher.AEAD
}

func newKey(id ID, secret []byte) (*Key, error) {
	aead, err := newAEAD(secret)
	if err != nil {
		return nil, err
	}
	return &Key{id, aead}, nil
}

// ID returns by what the key is found again.
func (k *Key) ID() ID { return k.id }

// SealEvent encrypts the record at an offset of the session. It can be opened as the record
// at this offset only.
func (k *Key) SealEvent(offset int64, data []byte) []byte {
	at := place(offset)
	return k.seal(data, at[:])
}

// OpenEvent decrypts what [Key.SealEvent] has encrypted.
func (k *Key) OpenEvent(offset int64, sealed []byte) ([]byte, error) {
	at := place(offset)
	return k.open(sealed, at[:])
}

// Seal encrypts a member of the session's entry in the catalogue, which has a name.
func (k *Key) Seal(name string, data []byte) []byte { return k.seal(data, []byte(name)) }

// Open decrypts what [Key.Seal] has encrypted under the same name.
func (k *Key) Open(name string, sealed []byte) ([]byte, error) { return k.open(sealed, []byte(name)) }

func (k *Key) seal(data, about []byte) []byte {
	return k.aead.Seal(make([]byte, 0, len(data)+k.aead.Overhead()), nil, data, about)
}

func (k *Key) open(sealed, about []byte) ([]byte, error) {
	data, err := k.aead.Open(nil, nil, sealed, about)
	if err != nil {
		return nil, ErrNotSealed
	}
	return data, nil
}

// place is what a sealed record is bound to besides its session. No name of [Key.Seal] has
// its first byte.
func place(offset int64) (at [9]byte) {
	binary.BigEndian.PutUint64(at[1:], uint64(offset))
	return at
}
