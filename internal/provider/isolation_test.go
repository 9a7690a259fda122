package provider

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestIsolation: 200 calls at once for 20 tenants at 10 upstreams, some of
// them given up in the middle. Every answer belongs to its call, and every
// upstream saw only the keys made for it.
func TestIsolation(t *testing.T) {
	const upstreams, tenants, calls = 10, 20, 200
	pool := x509.NewCertPool()
	bases := make([]string, upstreams)
	for i := range bases {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "upstream-%d %s ", i, r.Header.Get("Authorization"))
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(body)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes of calls given up
		s.StartTLS()
		t.Cleanup(s.Close)
		pool.AddCert(s.Certificate())
		bases[i] = s.URL
	}
	providers := make([]*Provider, upstreams*tenants)
	for i := range providers {
		// One name for all: nothing may be found by it.
		providers[i] = mustNew(t, Spec{Type: OpenAI, BaseURL: bases[i%upstreams], APIKey: fmt.Sprintf("key-%d-%d", i/upstreams, i%upstreams), ConnectTimeout: time.Minute}, Deps{RootCAs: pool})
		t.Cleanup(providers[i].Close)
	}
	var wg sync.WaitGroup
	for n := range calls {
		wg.Go(func() {
			tenant, up := n%tenants, rand.IntN(upstreams)
			p := providers[tenant*upstreams+up]
			for round := range 5 {
				marker := fmt.Sprintf("tenant-%d-call-%d-%d", tenant, n, round)
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(2000))*time.Microsecond, cancel)
				}
				out, err := p.Request(ctx, Call{
					Method: "POST", Path: "/chat/completions", ContentLength: int64(len(marker)), Body: strings.NewReader(marker),
					Header: http.Header{"Authorization": {"Bearer router-key"}, "X-Api-Key": {"router-key"}},
				})
				if err != nil {
					t.Error(err)
				}
				resp, err := p.RoundTrip(ticket(t), out)
				if err == nil {
					var got []byte
					got, err = io.ReadAll(resp.Body)
					resp.Body.Close()
					if want := fmt.Sprintf("upstream-%d Bearer key-%d-%d %s", up, tenant, up, marker); err == nil && string(got) != want {
						t.Errorf("%q, want %q", got, want)
					}
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

// BenchmarkRequest is what building a request and noting its connection cost.
func BenchmarkRequest(b *testing.B) {
	p := mustNew(b, Spec{Type: OpenAI, APIKey: "k"}, Deps{})
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer x"}, "User-Agent": {"OpenAI/JS"}, "Accept": {"application/json"}, "X-Stainless-Lang": {"js"}, "X-Request-Id": {"r"}}
	body := strings.Repeat("x", 700)
	for _, traced := range []string{"plain", "traced"} {
		b.Run(traced, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx := context.Background()
				if traced == "traced" {
					ctx = WithTrace(ctx, new(ConnInfo))
				}
				if _, err := p.Request(ctx, Call{Method: "POST", Path: "/chat/completions", Header: header, ContentLength: 700, Body: strings.NewReader(body)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
