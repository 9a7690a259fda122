// Package local tells which names and addresses are this machine's own. It
// decides nothing; whoever serves without a credential asks it.
package local

import (
	"net"
	"strings"
)

// Host reports whether a Host header, or the address of a listener, names this
// machine's loopback. A site whose name was rebound to 127.0.0.1 sends its own
// name and is refused.
func Host(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
