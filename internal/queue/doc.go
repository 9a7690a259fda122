// Package queue orders work that waits. It takes time as an argument, does no
// I/O and starts no goroutine; its owner serialises the calls.
package queue
