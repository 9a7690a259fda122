package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/queue"
)

type digest = [sha256.Size]byte

// Key is one of a workload's keys, known by its digest. It is the workload too:
// whoever has shown it is that caller. It is immutable; limiters have locks.
type Key struct {
	*Workload
	short   string
	limiter *admit.Limiter // nil as long as keys have had no limits
}

// Short is the first 8 hex digits of the key's digest, "" for no key.
func (k *Key) Short() string { return k.short }

// Directory finds the workload of a key. It is immutable.
type Directory struct {
	byKey map[digest]*Key
	all   []*Workload
	specs []Spec // of all, in the same order
	open  *Key
}

// NewDirectory indexes workloads by key. With none, one open workload serves
// everybody; prior supplies workloads that keep their state, by name, and their
// keys, by digest.
func NewDirectory(specs []Spec, prior *Directory) (*Directory, error) {
	d, err := Beside(specs, prior)
	if err != nil {
		return nil, err
	}
	d.Configure("") // nothing can fail any more
	return d, nil
}

// Beside is NewDirectory without effect on the workloads that both know: they are
// configured as prior says until Configure is called.
func Beside(specs []Spec, prior *Directory) (*Directory, error) {
	d := &Directory{byKey: make(map[digest]*Key)}
	if len(specs) == 0 {
		specs = []Spec{{Name: Open, Priority: queue.Interactive}}
	}
	foremost := queue.Batch
	for _, spec := range specs {
		foremost = min(foremost, spec.Priority)
	}
	for i := range specs {
		specs[i].Sharing, specs[i].Foremost = len(specs), specs[i].Priority == foremost
	}
	for _, spec := range specs {
		w := prior.named(spec.Name)
		fresh := w == nil
		if fresh {
			w = New(spec)
		}
		for _, key := range spec.Keys {
			sum, err := hash(key)
			if err != nil {
				return nil, fmt.Errorf("workload %q: %w", spec.Name, err)
			}
			k := prior.key(sum, w, spec.KeyLimits)
			if d.byKey[sum] = k; fresh && k.limiter != nil {
				k.limiter.Reconfigure(spec.KeyLimits)
			}
		}
		if len(spec.Keys) == 0 && spec.Name == Open {
			d.open = &Key{Workload: w}
		}
		d.all = append(d.all, w)
	}
	for _, spec := range specs {
		spec.Keys = nil // digests are kept alone
		d.specs = append(d.specs, spec)
	}
	return d, nil
}

// Configure puts what the directory says of a workload and of its keys in force;
// "" is all of them. A name that it does not know is left as it is.
func (d *Directory) Configure(name string) {
	limits := make(map[*Workload]admit.Limits, len(d.specs))
	for i, spec := range d.specs {
		if name == "" || name == spec.Name {
			d.all[i].Reconfigure(spec)
			limits[d.all[i]] = spec.KeyLimits
		}
	}
	for _, k := range d.byKey {
		if l, ok := limits[k.Workload]; ok && k.limiter != nil {
			k.limiter.Reconfigure(l)
		}
	}
}

// key is the workload's key as it was, or a new one. Its limits hold once they are
// configured, so that one beside another directory's adds none of its own.
func (d *Directory) key(sum digest, w *Workload, limits admit.Limits) *Key {
	if d != nil {
		if k := d.byKey[sum]; k != nil && k.Workload == w && (k.limiter != nil || !limits.Any()) {
			return k
		}
	}
	k := &Key{Workload: w, short: hex.EncodeToString(sum[:4])}
	if limits.Any() {
		k.limiter = admit.NewLimiter(admit.OfKey, admit.Limits{})
	}
	return k
}

func (d *Directory) named(name string) *Workload {
	if d == nil {
		return nil
	}
	for _, w := range d.all {
		if w.name == name {
			return w
		}
	}
	return nil
}

func hash(key string) (sum digest, err error) {
	if hexed, ok := strings.CutPrefix(key, "sha256:"); ok {
		raw, err := hex.DecodeString(hexed)
		if err != nil || len(raw) != len(sum) {
			return sum, errors.New("key digest must be sha256: and 64 hex digits")
		}
		copy(sum[:], raw)
		return sum, nil
	}
	if key == "" {
		return sum, errors.New("empty key")
	}
	return sha256.Sum256([]byte(key)), nil
}

// ShortOf is a configured key as it may be shown: the first 8 hex digits of its
// digest.
func ShortOf(key string) string {
	sum, err := hash(key)
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum[:4])
}

// Identify returns a key with its workload, or nil. An open directory knows
// everybody, whatever key is shown.
func (d *Directory) Identify(key string) *Key {
	if d.open != nil {
		return d.open
	}
	if key == "" {
		return nil
	}
	return d.byKey[sha256.Sum256([]byte(key))]
}

// All lists the workloads in configured order.
func (d *Directory) All() []*Workload { return d.all }

// Keys lists the keys of a workload, in the order of their digests.
func (d *Directory) Keys(w *Workload) []*Key {
	var keys []*Key
	for k := range maps.Values(d.byKey) {
		if k.Workload == w {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b *Key) int { return strings.Compare(a.short, b.short) })
	return keys
}
