package steer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Sealed is the entry with its digest: of what it says and of the digest of the one
// before, "" for the first.
func (e Entry) Sealed(before string) Entry {
	e.Digest = e.digest(before)
	return e
}

func (e Entry) digest(before string) string {
	e.Digest, e.At = before, e.At.UTC().Round(0) // as it is read again
	text, _ := json.Marshal(e)                   // strings, numbers and a time: it cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Verify reports the first entry, the oldest coming first, that was changed, or
// behind which one is missing.
func Verify(list []Entry) error {
	for i, e := range list {
		if i == 0 {
			continue // what came before it is not here
		}
		switch before := list[i-1]; {
		case e.ID != before.ID+1:
			return fmt.Errorf("entry %d follows entry %d: what is between them is missing", e.ID, before.ID)
		case e.Digest != e.digest(before.Digest):
			return fmt.Errorf("entry %d is not what was written, or the one before it is not", e.ID)
		}
	}
	return nil
}
