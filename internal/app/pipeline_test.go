package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// quiet is an answer's writer that keeps nothing.
type quiet struct {
	header http.Header
	status int
	bytes  int
}

func (q *quiet) Header() http.Header                { return q.header }
func (q *quiet) WriteHeader(status int)             { q.status = status }
func (q *quiet) Write(p []byte) (int, error)        { q.bytes += len(p); return len(p), nil }
func (q *quiet) Flush()                             {}
func (q *quiet) SetReadDeadline(time.Time) error    { return nil }
func (q *quiet) SetWriteDeadline(t time.Time) error { return nil }

// instant answers every call at once.
type instant struct{ json, stream string }

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	body, kind := i.json, "application/json"
	sent, _ := io.ReadAll(r.Body) // memory only
	if strings.Contains(string(sent), `"stream":true`) {
		body, kind = i.stream, "text/event-stream"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// overKey is that of a workload beyond its limit.
const overKey = "key-of-a-workload-beyond-its-limit"

// BenchmarkPipeline is the router without sockets: everything between a parsed
// request and the upstream's round trip, with the log written to a file. The
// refusal is that of a workload beyond its limit.
func BenchmarkPipeline(b *testing.B) { pipeline(b, "") }

// BenchmarkPipelineExporting is the same with an export to a collector that
// takes everything: every request is traced, or none and only measured.
func BenchmarkPipelineExporting(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer srv.Close()
	for _, sample := range []string{"1", "0"} {
		b.Run("sample="+sample, func(b *testing.B) {
			pipeline(b, "telemetry: {otlp: {endpoint: '"+srv.URL+"', queue: 65536, sample: "+sample+"}}\n")
		})
	}
}

func pipeline(b *testing.B, more string) {
	file := filepath.Join(b.TempDir(), "hourthree.yaml")
	text := "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\n" +
		"providers: {a: {type: openai, api_key: secret-of-a}}\n" +
		"models: {m: {targets: [{provider: a, model: real}]}}\n" +
		"workloads:\n" +
		"  team: {keys: [" + callerKey + "], limits: {rpm: 100000000, tpm: 100000000000, concurrency: 1000}}\n" +
		"  over: {keys: [" + overKey + "], limits: {rpm: 1}}\n" + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	upstream := instant{chatBody(strings.Repeat("word ", 180)), strings.Repeat("data: "+chunk(strings.Repeat("x", 100))+"\n\n", 50) + "data: " + finishChunk + "\n\ndata: [DONE]\n\n"}
	a, err := New(Options{ConfigPath: file, Env: os.LookupEnv, Stdout: io.Discard, Stderr: log, Version: "test", trip: upstream})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Stop()
	handler := a.gateway.Handler()
	for _, c := range []struct {
		name, stream, key string
		status            int
	}{
		{"json", "false", callerKey, http.StatusOK}, {"stream", "true", callerKey, http.StatusOK},
		{"refusal", "true", overKey, http.StatusTooManyRequests},
	} {
		body := `{"model":"m","stream":` + c.stream + `,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 130) + `"}]}`
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+c.key)
			r.ContentLength = int64(len(body))
			for range 20 { // the burst of the one beyond its limit
				r.Body = io.NopCloser(strings.NewReader(body))
				handler.ServeHTTP(&quiet{header: http.Header{}}, r)
			}
			for b.Loop() {
				r.Body = io.NopCloser(strings.NewReader(body))
				w := &quiet{header: http.Header{}}
				handler.ServeHTTP(w, r)
				if w.status != c.status {
					b.Fatalf("status %d", w.status)
				}
			}
		})
	}
}
