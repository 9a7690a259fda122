package peer

import (
	"regexp"
	"strings"
)

// Marks of what stands for a credential and is none: a reference, or a sample.
var (
	reference = regexp.MustCompile(`(?i)^(bearer\s+|basic\s+)?(os\.environ/|env\.|env:|\$|\{\{|\{vault://|\{env|vault://|%\[|%\(|@|sha256:|<|file:|/)`)
	sample    = regexp.MustCompile(`(?i)(your[-_ ]?|my[-_ ]|example|placeholder|change[-_ ]?me|replace|insert|dummy|fake|redacted|xxxx|\*\*\*|\.\.\.|todo|sample|_here|-here|<.*>|\[.*\]|not[-_ ]?needed|anything)`)
	keyName   = regexp.MustCompile(`(?i)^(api[-_]?key|master[-_]?key|salt[-_]?key|secret|.*_secret|.*[-_]api[-_]?key|aws_secret_access_key|aws_session_token|authorization|x-api-key|header_value|password|.*_password|token|.*_token|access_token|virtual_key|client_secret|vertex_credentials)$`)
)

// literal says whether text is a credential that is written out.
func literal(text string) bool {
	text = strings.TrimSpace(text)
	bare := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, "Bearer "), "bearer "))
	switch {
	case len(bare) < 12, reference.MatchString(text), sample.MatchString(bare), strings.Contains(text, "${"):
		return false
	}
	return !plain(bare)
}

// plain says that text is a word of few kinds of characters, as names are.
func plain(text string) bool {
	digits, letters := 0, 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letters++
		case strings.ContainsRune("-_.+/=:~!", c):
		default:
			return true
		}
	}
	return digits == 0 && letters < 32 || letters == 0
}

// secret notes a credential that is written out.
func (r *reader) secret(text string, s Spot) {
	if literal(text) && len(r.g.Secrets) < maxRoutes {
		r.g.Secrets = append(r.g.Secrets, s)
	}
}

// secrets looks through a document for keys of credentials.
func (r *reader) secrets(n node, depth int) {
	if depth > 32 {
		return
	}
	for _, f := range n.fields() {
		key := lastKey(f.path)
		if text, ok := f.v.(string); ok && keyName.MatchString(key) {
			r.secret(text, f.spot())
		}
		r.secrets(f, depth+1)
	}
	for _, e := range n.list() {
		r.secrets(e, depth+1)
	}
}

func lastKey(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[strings.LastIndexByte(path, '[')+1 : len(path)-1]
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}
