SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Packages in which goroutines meet.
CONCURRENT := ./internal/access ./internal/admit ./internal/app ./internal/attempt ./internal/cluster ./internal/gateway \
	./internal/manifest ./internal/notify ./internal/otlp ./internal/provider ./internal/route ./internal/simulate \
	./internal/store ./internal/telemetry ./internal/watch ./internal/workload

STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0
FUZZ_TIME ?= 1m

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: build
build: ## bin/hourthree
	CGO_ENABLED=0 go build -trimpath -o bin/hourthree ./cmd/hourthree

.PHONY: test
test: test-setup build ## everything: unit tests, then the binary against software that is not ours
	go test ./...
	go test -tags conformance -count=1 -timeout 10m -v ./test/conformance | { grep -v '^=== ' || true; }
	bin/hourthree drill run --all --short | sed -n '/MISSED/p;/^summary/,$$p'

.PHONY: test-setup
test-setup: ## install what the tests need and is missing
	@test/setup.sh

.PHONY: test-cluster
test-cluster: ## read the cluster in KUBECONFIG as an audit does; skipped when it is not set
	go test -tags cluster -count=1 -v -run TestRealCluster ./internal/cluster

.PHONY: check
check: ## format, vet, staticcheck, known vulnerabilities, race detector
	@unformatted=$$(gofmt -l bench cmd deploy internal test *.go); \
		if [ -n "$$unformatted" ]; then echo "gofmt -w is due for:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags conformance ./test/...
	$(STATICCHECK) ./...
	$(STATICCHECK) -tags conformance ./test/...
	@out=$$($(GOVULNCHECK) ./... 2>&1) && echo "$$out" || { echo "$$out"; \
		if grep -q 'fetching vulnerabilities' <<<"$$out"; then echo "govulncheck skipped: its data cannot be reached from here"; else exit 1; fi; }
	go test -race $(CONCURRENT)

.PHONY: fuzz
fuzz: ## a minute (FUZZ_TIME) for every fuzz target; findings become seeds
	@grep -rHoE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' internal | while IFS=: read -r file name; do \
		name=$${name#func }; echo "== $$(dirname "$$file") $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 2s "./$$(dirname "$$file")"; \
	done

.PHONY: bench-speed
bench-speed: ## cost per request and stream chunk against nginx and ReverseProxy
	go run ./bench/speed

.PHONY: bench-faults
bench-faults: ## the fault matrix against nginx and no router
	go run ./bench/faults

.PHONY: bench-overload
bench-overload: ## goodput at 1 to 10 times the capacity against nginx and no proxy
	go run ./bench/overload

.PHONY: soak
soak: ## 20 minutes (SOAK="-short": 60 s) of every kind of traffic against the built router
	go run ./test/soak $(SOAK)

.PHONY: generate
generate: ## schemas of configuration and drills, their reference and pages
	go generate ./...

.PHONY: drill-results
drill-results: build ## play every drill and record the results, and make their pages anew
	bin/hourthree drill run --all --json bin/drills.json || [ $$? -eq 1 ]
	go run ./internal/drill/gen -dir internal/drill -results bin/drills.json -version "$$(bin/hourthree version | cut -d' ' -f2-)"
