// Package testnet is scripted upstreams on a network in memory (memnet), and an
// OpenTelemetry collector, for tests only: of a package that calls upstreams, or of the whole router. It
// decides nothing about the product and no product code may import it.
//
// A test makes upstreams on a Net (NewUpstream) with what they answer to which
// request (Script). Every upstream logs what it was asked, so that a test can
// count; it is closed by the test's cleanup, in the test's own bubble. An
// Upstream is safe for concurrent use.
package testnet
