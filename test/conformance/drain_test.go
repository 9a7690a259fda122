//go:build conformance

package conformance

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// liveStreams opens n streams and waits until each has had content. The
// returned function waits for their ends.
func liveStreams(t *testing.T, r *router, model string, n int) (ends func() []streamEnd) {
	t.Helper()
	out := make([]streamEnd, n)
	var wg, begun sync.WaitGroup
	begun.Add(n)
	for i := range n {
		resp := post(t, r.origin+"/v1/chat/completions", userKey, `{"model":"`+model+`","stream":true,"messages":[{"role":"user","content":"go"}]}`)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
		wg.Go(func() {
			head := make([]byte, 512)
			k, _ := io.ReadAtLeast(resp.Body, head, 256) // a broken stream shows at its end
			begun.Done()
			rest, err := io.ReadAll(resp.Body)
			out[i] = streamEnd{string(head[:k]) + string(rest), err}
		})
	}
	begun.Wait()
	return func() []streamEnd { wg.Wait(); return out }
}

type streamEnd struct {
	text string
	err  error
}

func (r *router) terminate(t *testing.T) time.Time {
	t.Helper()
	if err := syscall.Kill(r.cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return time.Now()
}

// notReady waits for readiness to fail and for the listener to be closed.
func (r *router) notReady(t *testing.T, since time.Time) {
	t.Helper()
	eventually(t, 5*time.Second, "readiness fails", func() bool {
		status, _, _ := get(t, r.admin+"/readyz")
		return status == http.StatusServiceUnavailable
	})
	if took := time.Since(since); took > 200*time.Millisecond {
		t.Errorf("readiness failed only %s after the signal", took)
	}
	if status, _, _ := get(t, r.admin+"/healthz"); status != http.StatusOK {
		t.Errorf("a draining process is alive, yet /healthz says %d", status)
	}
}

// TestDrain: on SIGTERM readiness fails at once, 20 live streams run to their
// ends, nobody new is let in, and the process ends with 0.
func TestDrain(t *testing.T) {
	f := startFake(t)
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(), "models": conf{"m": order("plain/drip.m")}})
	ends := liveStreams(t, r, "m", 20)
	r.notReady(t, r.terminate(t))
	eventually(t, 2*time.Second, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.origin, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	for i, e := range ends() {
		if e.err != nil || !strings.Contains(e.text, "word149 ") || !strings.HasSuffix(e.text, "data: [DONE]\n\n") {
			t.Errorf("stream %d ended with %v, having %d bytes", i, e.err, len(e.text))
		}
	}
	r.exits(t, 0)
}

// TestDrainLimit: streams that outlast the drain get an error event and a
// reset, never an end that looks like a whole answer.
func TestDrainLimit(t *testing.T) {
	f := startFake(t)
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(), "models": conf{"m": order("plain/rain.m")}, "http": conf{"drain": "1s"}})
	ends := liveStreams(t, r, "m", 5)
	r.notReady(t, r.terminate(t))
	for i, e := range ends() {
		if e.err == nil || strings.Contains(e.text, "[DONE]") {
			t.Errorf("stream %d was cut off and looks whole", i)
		}
		if !strings.Contains(e.text, `"error"`) {
			t.Errorf("stream %d was cut off without an error event: …%q, %v", i, e.text[max(0, len(e.text)-80):], e.err)
		}
	}
	r.exits(t, 0)
}

func (r *router) exits(t *testing.T, code int) {
	t.Helper()
	select {
	case <-r.ended:
		if got := r.cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("exit code %d, want %d", got, code)
		}
	case <-time.After(10 * time.Second):
		t.Error("the process goes on")
	}
}
