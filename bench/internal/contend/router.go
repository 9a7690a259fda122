package contend

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/hourthree/hourthree/bench/internal/upstream"
)

// Key is the API key of the workload in the router's configuration.
const Key = "bench-workload-key"

// OverKey is that of a workload that is always beyond its limit.
const OverKey = "bench-workload-beyond-its-limit"

const routerPackage = "github.com/hourthree/hourthree/cmd/hourthree"

// Build builds the router from the tree into dir and returns its path.
func Build(dir string) (string, error) {
	bin := filepath.Join(dir, "hourthree")
	if out, err := exec.Command("go", "build", "-o", bin, routerPackage).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the router: %w\n%s", err, out)
	}
	return bin, nil
}

// Order is how the router ranks its targets.
type Order int

// The orders.
const (
	Ranked Order = iota // the first is the primary, the second the backup
	Equal               // balanced
)

// Router starts the router bin before the upstreams, with every protection on:
// a workload with a key and limits, targets with limits, default breaker,
// budgets and timers, logs at the default level to s.Log or nowhere.
func Router(s Spec, bin, dir string, order Order, addrs ...string) (*Process, error) {
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	admin, err := freeAddr()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "hourthree-*.yaml")
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(routerConf(listen, admin, order, addrs)); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if out, err := exec.Command(bin, "validate", f.Name()).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the router refuses its configuration: %w: %s", err, out)
	}
	return launch("hourthree", listen, s.command(bin, "serve", "-c", f.Name()), func() error {
		resp, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz: %s", resp.Status)
		}
		return dial(listen)
	})
}

// routerConf has limits that count every request and refuse none.
func routerConf(listen, admin string, order Order, addrs []string) string {
	const limits = "{rpm: 100000000, tpm: 100000000000, concurrency: 20000}"
	var providers, targets strings.Builder
	for i, a := range addrs {
		rank := 1
		if order == Ranked {
			rank = i + 1
		}
		fmt.Fprintf(&providers, "  upstream%d: {type: openai-compatible, base_url: \"http://%s/v1\", api_key: bench-upstream-key, domain: upstream%d}\n", i+1, a, i+1)
		fmt.Fprintf(&targets, "      - {provider: upstream%d, order: %d, limits: %s}\n", i+1, rank, limits)
	}
	return fmt.Sprintf("listen: %s\nadmin: {listen: %s}\nproviders:\n%smodels:\n  %s:\n    targets:\n%sworkloads:\n  bench: {keys: [%s], limits: %s}\n  over: {keys: [%s], limits: {rpm: 1}}\n",
		listen, admin, providers.String(), upstream.Model, targets.String(), Key, limits, OverKey)
}
