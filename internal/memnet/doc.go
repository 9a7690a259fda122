// Package memnet is a network in memory. Connections behave like TCP's: bounded
// buffers, deadlines, an orderly close that lets the peer read what was sent,
// and a reset that does not. Dials can fail as they do outside: a name that
// does not resolve, a port that refuses, a host that answers nothing. Nothing
// leaves the process and only timers wait, so whatever runs on it may run in
// virtual time (testing/synctest).
//
// Drills run the router on it, and so do tests. A Net is safe for concurrent
// use.
package memnet
