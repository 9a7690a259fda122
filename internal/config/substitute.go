package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxSecretFile bounds what is read of a ${file:…}.
const maxSecretFile = 64 << 10

var (
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// bareReference is a value that holds nothing but a name or a path.
	bareReference = regexp.MustCompile(`^\$\{(file:/[^}]*|[A-Za-z_][A-Za-z0-9_]*)\}$`)
)

// substitute replaces ${NAME}, ${NAME:-default} and ${file:/path} in one
// value; $$ is a dollar sign, and a lone one stays. What is put in is not
// looked at again. A name that is unset or empty is an error, never an empty
// key. No error holds what was put in.
func substitute(s string, env func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String(), nil
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		switch s[0] {
		case '$':
			b.WriteByte('$')
			s = s[1:]
		case '{':
			end := strings.IndexByte(s, '}')
			if end < 0 {
				return "", errors.New("has a ${ that is not closed; write $$ for a dollar sign")
			}
			v, err := reference(s[1:end], env)
			if err != nil {
				return "", err
			}
			b.WriteString(v)
			s = s[end+1:]
		default:
			b.WriteByte('$')
		}
	}
}

// reference is the value behind ${ref}. A value of env that is not set is a
// stand-in, for what has no default and no file.
func reference(ref string, env func(string) (string, bool)) (string, error) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		v, err := secretFile(path)
		if standIn, set := env(ref); err != nil && standIn != "" && !set {
			return standIn, nil
		}
		return v, err
	}
	name, fallback, has := strings.Cut(ref, ":-")
	if !envName.MatchString(name) {
		return "", errors.New("has a ${…} that is none of ${NAME}, ${NAME:-default} and ${file:/path}")
	}
	v, ok := env(name)
	switch {
	case v != "" && (ok || !has):
		return v, nil
	case has:
		return fallback, nil
	case ok:
		return "", fmt.Errorf("needs ${%s}, which is empty in the environment", name)
	}
	return "", fmt.Errorf("needs ${%s}, which is not set in the environment", name)
}

// secretFile reads a small regular file, such as a mounted secret, and trims
// the space around it.
func secretFile(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("${file:%s} needs an absolute path", path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("${file:%s} does not exist", path)
	case err != nil:
		return "", fmt.Errorf("${file:%s} cannot be read", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("${file:%s} is not a regular file", path)
	case info.Size() > maxSecretFile:
		return "", fmt.Errorf("${file:%s} is larger than %s", path, Bytes(maxSecretFile))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("${file:%s} cannot be read", path)
	}
	v := strings.TrimSpace(string(data))
	if v == "" {
		return "", fmt.Errorf("${file:%s} is empty", path)
	}
	return v, nil
}
