// Package provider knows how to speak to one upstream account: where it is,
// how a URL is built there, which credential goes out and which of a client's
// headers may go with it, and over which connections.
//
// It decides nothing about failures: it makes exactly the call it is asked
// for, never repeats one that may have reached the upstream, follows no
// redirect, and returns whatever came back. Whether an answer is good, and
// what to try next, is for others to say.
//
// What is guaranteed:
//
//   - Only the provider's own credential goes out, only to the host of its
//     base_url. Client headers pass by an allow-list (headers.go).
//   - A provider without its credential cannot be made.
//   - A credential is in no error text and no printed form of a Spec.
//   - An error before a connection stands (name, connect, TLS) is a
//     *net.OpError with Op "dial".
//   - net/http's own replay is limited to requests of which not one byte was
//     written (request.go): the number of calls an upstream sees is the number
//     of calls asked for.
//
// A Provider is safe for concurrent use. It starts no goroutines of its own;
// its transport's end with their connections.
package provider
