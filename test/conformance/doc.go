// Package conformance drives the built router with software that the project
// did not write: the official OpenAI SDKs for JavaScript and Go, Azure's SDK
// for Go, Vercel's AI SDK and LangChain as clients, aimock and llama.cpp as
// upstreams, promtool and Chromium as readers of what an operator sees.
//
// The tests carry the build tag conformance, for they need Node, the packages
// of test/clients, promtool and chromium; `make test` installs these and runs
//
//	go test -tags conformance ./test/...
//
// Everything runs on the loopback interface. Each test starts its own router
// process and upstreams and ends them; the client programs of test/clients
// are started once and serve all tests.
package conformance
