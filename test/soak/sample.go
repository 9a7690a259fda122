package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sample is the router at one moment.
type sample struct {
	Seconds    float64 `json:"seconds"` // since the start
	Phase      string  `json:"phase"`
	RSS        int64   `json:"rss_bytes"`
	Heap       int64   `json:"heap_in_use_bytes"`
	Alloc      int64   `json:"heap_alloc_bytes"`
	Goroutines int64   `json:"goroutines"`
	Reserved   int64   `json:"reserved_bytes"`
	Limit      int64   `json:"limit_bytes"`
	InFlight   int64   `json:"in_flight"`
	Queue      int64   `json:"queue"`
	Calls      int64   `json:"target_in_flight"` // of all targets
	Series     int64   `json:"series"`           // of the router's own metrics
	Files      int     `json:"open_files"`
	gcs        int64
	named      bool // a made-up model name is among the labels
}

var adminClient = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}

func get(url string) ([]byte, error) {
	resp, err := adminClient.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// take reads the router's metrics and what the system says of its process.
func take(r *router) (sample, error) {
	body, err := get("http://" + r.admin + "/metrics")
	if err != nil {
		return sample{}, err
	}
	s := parse(string(body))
	s.RSS = residentBytes(r.cmd.Process.Pid)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.cmd.Process.Pid))
	s.Files = len(files)
	return s, err
}

// parse reads Prometheus' text format.
func parse(text string) sample {
	var s sample
	fields := map[string]*int64{
		"go_memstats_heap_inuse_bytes": &s.Heap, "go_memstats_heap_alloc_bytes": &s.Alloc, "go_goroutines": &s.Goroutines,
		"hourthree_memory_reserved_bytes": &s.Reserved, "hourthree_memory_limit_bytes": &s.Limit, "hourthree_inflight": &s.InFlight,
		"hourthree_queue_length": &s.Queue, "go_gc_duration_seconds_count": &s.gcs,
	}
	for line := range strings.Lines(text) {
		name, value, ok := cutLast(strings.TrimSpace(line))
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(name, "hourthree_") {
			s.Series++
			s.named = s.named || strings.Contains(name, madeUp)
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		if at := fields[name]; at != nil {
			*at = int64(n)
		}
		if strings.HasPrefix(name, "hourthree_target_inflight{") {
			s.Calls += int64(n)
		}
	}
	return s
}

func cutLast(line string) (before, after string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

func residentBytes(pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// slots are the calls in flight of every target and the requests of every
// workload, as the operator's state shows them.
type slots struct {
	InFlight int64 `json:"in_flight"`
	Queued   int64 `json:"queued"`
	Reserved int64 `json:"memory_reserved_bytes"`
	Targets  []struct {
		Name     string `json:"name"`
		InFlight int64  `json:"in_flight"`
	} `json:"targets"`
	Workloads []struct {
		Name     string `json:"name"`
		InFlight int64  `json:"in_flight"`
		Memory   int64  `json:"memory_bytes"`
	} `json:"workloads"`
}

func state(r *router) (s slots, err error) {
	body, err := get("http://" + r.admin + "/api/v1/state")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

// taken lists what is not free, "" when everything is.
func (s slots) taken() string {
	var out []string
	add := func(what string, n int64) {
		if n != 0 {
			out = append(out, fmt.Sprint(what, " ", n))
		}
	}
	add("requests", s.InFlight)
	add("queue", s.Queued)
	add("reserved", s.Reserved)
	for _, t := range s.Targets {
		add("target "+t.Name, t.InFlight)
	}
	for _, w := range s.Workloads {
		add("workload "+w.Name, w.InFlight)
		add("memory of "+w.Name, w.Memory)
	}
	return strings.Join(out, ", ")
}

// watch takes a sample a second and asks for the health ten times a second.
type watch struct {
	router *router
	start  time.Time

	mu      sync.Mutex
	phase   string
	samples []sample
	missed  int // samples that could not be taken
	health  []time.Duration
	sick    int // health requests that failed
}

func (w *watch) enter(phase string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = phase
}

func (w *watch) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { each(ctx, time.Second, w.look) })
	wg.Go(func() { each(ctx, 100*time.Millisecond, w.knock) })
	wg.Wait()
}

func each(ctx context.Context, period time.Duration, f func()) {
	clock := time.NewTicker(period)
	defer clock.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
			f()
		}
	}
}

func (w *watch) look() {
	s, err := take(w.router)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.missed++
		return
	}
	s.Seconds, s.Phase = time.Since(w.start).Seconds(), w.phase
	w.samples = append(w.samples, s)
}

func (w *watch) knock() {
	start := time.Now()
	_, err := get("http://" + w.router.admin + "/healthz")
	took := time.Since(start)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.sick++
		return
	}
	w.health = append(w.health, took)
}

// quantile is that of the times that the health requests took.
func (w *watch) quantile(q float64) time.Duration {
	if len(w.health) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.health))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// rested is the router without traffic: its goroutines, and its heap behind a
// collection. Scrapes are what makes it collect; the least of the heap while
// three collections pass is near what lives.
func rested(r *router) (goroutines, heap int64, err error) {
	first, err := take(r)
	if err != nil {
		return 0, 0, err
	}
	heap, last := first.Alloc, first
	for end := time.Now().Add(30 * time.Second); last.gcs < first.gcs+3 && time.Now().Before(end); {
		if last, err = take(r); err != nil {
			return 0, 0, err
		}
		heap = min(heap, last.Alloc)
	}
	return last.Goroutines, heap, nil
}
