package admin

import (
	"net"
	"strings"
)

// local reports whether a Host header names this machine's loopback. A site
// whose name was rebound to 127.0.0.1 sends its own name and is refused.
func local(host string) bool {
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
