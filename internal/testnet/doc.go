// Package testnet is a network in memory with scripted upstreams on it, for
// tests only. Connections behave like TCP's: bounded buffers, deadlines, an
// orderly close that lets the peer read what was sent, and a reset that does
// not. Nothing leaves the process and only timers wait, so a test may run in
// virtual time (testing/synctest).
//
// A test makes a Net, upstreams on it (NewUpstream) with what they answer to
// which request (Script), and dials through Net.Dial. Every upstream logs
// what it was asked, so that a test can count. Everything is closed by the
// test's cleanup, in the test's own bubble.
//
// A Net and an Upstream are safe for concurrent use.
package testnet
