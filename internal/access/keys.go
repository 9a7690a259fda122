package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strings"
)

type digest = [sha256.Size]byte

// Key is a configured credential.
type Key struct {
	Name string // of the person or the program
	Key  string // plain, or "sha256:" and 64 hex digits
	Role Role
}

// key is one without its secret.
type key struct {
	digest digest
	person Person
}

// Digest is the form in which a key may stand in a configuration: it does not
// give the key away.
func Digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func digestOf(given string) (sum digest, err error) {
	hexed, ok := strings.CutPrefix(given, "sha256:")
	if !ok {
		if given == "" {
			return sum, errors.New("empty key")
		}
		return sha256.Sum256([]byte(given)), nil
	}
	raw, err := hex.DecodeString(hexed)
	if err != nil || len(raw) != len(sum) {
		return sum, errors.New("a key's digest must be sha256: and 64 hex digits")
	}
	return digest(raw), nil
}

// find is the key with a digest, or nil. It looks at every key in constant time,
// so how long it takes says nothing of how near a guess came.
func find(keys []key, sum digest) *key {
	var found *key
	for i := range keys {
		if subtle.ConstantTimeCompare(keys[i].digest[:], sum[:]) == 1 {
			found = &keys[i]
		}
	}
	return found
}
