package config

import "strings"

// store checks where the store is. Whether the file can be written is seen at start.
func (k *checker) store() {
	p := k.c.Store.Path
	switch {
	case strings.HasSuffix(p, "/"):
		k.error("store.path", "names a directory", "name a file, such as "+p+"hourthree.db")
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		k.error("store.path", "has a control character", "")
	case strings.HasPrefix(p, "postgres:") || strings.HasPrefix(p, "postgresql:"):
		k.error("store.path", "is an address of PostgreSQL, which is not served by this version", "name a file, or memory")
	}
}
