package config

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// shortKey is the length below which a key can be guessed.
const shortKey = 16

func (k *checker) workloads() {
	type owner struct{ name, at string }
	owners := map[string]owner{}
	for _, name := range slices.Sorted(maps.Keys(k.c.Workloads)) {
		w, path := k.c.Workloads[name], "workloads."+name
		if len(w.Keys) == 0 && k.at[path+".keys"] != nil {
			k.error(path+".keys", "has no key", "write it as ${NAME}")
		}
		for i, key := range w.Keys {
			at := path + ".keys[" + strconv.Itoa(i) + "]"
			if key.value == "" {
				continue // reported
			}
			digest, ok := k.digest(at, key.value)
			if !ok {
				continue
			}
			switch other, taken := owners[digest]; {
			case taken && other.name == name:
				k.error(at, "is the same key as "+other.at, "remove one of them")
			case taken:
				k.error(at, "is a key of workload "+other.name+" too", "a key belongs to one workload")
			default:
				owners[digest] = owner{name, at}
			}
		}
		for i, m := range w.Models {
			k.known(path+".models["+strconv.Itoa(i)+"]", "model", m, k.models)
		}
		if len(w.Models) == 0 && k.at[path+".models"] != nil {
			k.error(path+".models", "is empty, and all models are meant when it is left out", "name the models, or remove it")
		}
	}
}

// digest is the SHA-256 of a key in hex, whichever way the key is given.
func (k *checker) digest(at, key string) (string, bool) {
	if given, ok := strings.CutPrefix(key, "sha256:"); ok {
		given = strings.ToLower(given)
		if b, err := hex.DecodeString(given); err != nil || len(b) != sha256.Size {
			k.error(at, "must be sha256: and 64 hex digits", "for instance from: printf %s \"$KEY\" | sha256sum")
			return "", false
		}
		return given, true
	}
	if len(key) < shortKey {
		k.warning(at, "is shorter than "+strconv.Itoa(shortKey)+" characters and can be guessed", "for instance: openssl rand -hex 24")
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:]), true
}
