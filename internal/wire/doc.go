// Package wire knows what is on the wire in the OpenAI dialect: the few
// fields of a request body the router acts on, the byte edits it may make, the
// frames of an event stream and what each says, token usage, whether a 200
// holds an answer, and the router's own error bodies.
//
// It decides what bytes mean and never what to do about it: no retries, no
// classes of failure, no routing. It never decodes and re-encodes a body: what
// it does not edit is forwarded byte for byte. It opens no socket, reads no
// clock and starts no goroutine.
//
// Nothing here is safe for concurrent use except by its callers' own care:
// values have one owner at a time. Slices handed out point into the caller's
// bytes unless a function says otherwise.
package wire
