// Package testnet is a network in memory with scripted upstreams on it, for
// tests only. Connections behave like TCP's: bounded buffers, deadlines, an
// orderly close that lets the peer read what was sent, and a reset that does
// not. Nothing leaves the process and only timers wait, so a test may run in
// virtual time (testing/synctest).
//
// It is for tests of everything that dials or listens: a package that calls
// upstreams, a handler behind a real http.Server, and the whole router, which
// takes Net.Listen and Net.Dial in place of the operating system's. It decides
// nothing about the product and no product code may import it.
//
// A test makes a Net, upstreams on it (NewUpstream) with what they answer to
// which request (Script), and dials through Net.Dial. Every upstream logs
// what it was asked, so that a test can count; it is closed by the test's
// cleanup, in the test's own bubble. A test that brings its own server opens a
// Listener and closes it. Dials can fail as they do outside: a name that does
// not resolve, a port that refuses, a host that answers nothing.
//
// A Net and an Upstream are safe for concurrent use.
package testnet
