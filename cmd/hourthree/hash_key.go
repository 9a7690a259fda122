package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/library"
)

// newKeyBytes is the length of a new key before it is written in hex.
const newKeyBytes = 24

func hashKeyCommand() *cobra.Command {
	var fresh bool
	c := &cobra.Command{
		Use: "hash-key", Short: "Turn a key into the digest that a configuration may hold", Args: cobra.NoArgs,
		Long: `Read a key from standard input and print it as sha256: and 64 hex digits, which
admin.keys and the keys of a workload take in place of the key itself. The key is
never an argument: those are in the shell's history.

With --new a key is made, and printed before its digest. Whoever is to have it
needs the first line, the configuration the second.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if fresh {
				raw := make([]byte, newKeyBytes)
				_, _ = rand.Read(raw) // it never fails
				key := hex.EncodeToString(raw)
				_, err := fmt.Fprintf(c.OutOrStdout(), "%s\n%s\n", key, access.Digest(key))
				return err
			}
			key, err := typedKey(c)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), access.Digest(key))
			return err
		},
	}
	c.Flags().BoolVar(&fresh, "new", false, "make a key")
	return c
}

// typedKey reads a key from standard input, which does not show it where somebody
// types.
func typedKey(c *cobra.Command) (string, error) {
	var text []byte
	var err error
	if f, ok := c.InOrStdin().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(c.ErrOrStderr(), "Key: ")
		text, err = term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(c.ErrOrStderr())
	} else {
		text, err = io.ReadAll(io.LimitReader(c.InOrStdin(), maxKeyFile+1))
	}
	key := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the key: %w", err)
	case len(text) > maxKeyFile || strings.ContainsAny(key, " \t\r\n"):
		return "", errors.New("that is no key: it has to be one line without spaces")
	case len(key) < library.LeastKey:
		return "", fmt.Errorf("the key has %d characters and can be guessed; it needs %d, and --new makes one", len(key), library.LeastKey)
	}
	return key, nil
}
