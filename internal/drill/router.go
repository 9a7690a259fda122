package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/memnet"
)

// router is this router: its handlers and pipeline, net/http's server and
// client, over connections in memory; one for each instance of the scenario's
// gateway.
type router struct {
	*rooms
	mine    *Mine
	weaken  weakness
	net     *memnet.Net
	client  *http.Client
	process []*process
	hosts   []*http.Server
	wg      sync.WaitGroup
	closing atomic.Bool // nothing begins any more
}

func newRouter(p *play, o Options) (contender, error) { return newWeakened(p, o, weakness{}) }

func newWeakened(p *play, o Options, w weakness) (contender, error) {
	r := &router{rooms: newRooms(p), mine: o.Config, weaken: w, net: memnet.New()}
	for _, v := range p.servers {
		h := &host{play: p, server: v, workloads: map[string]*Workload{}}
		for i := range p.Workloads {
			h.workloads[p.Workloads[i].Name] = &p.Workloads[i]
		}
		l := r.net.Listen(v.Name + ".test:80")
		s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		r.hosts = append(r.hosts, s)
		r.wg.Go(func() { _ = s.Serve(l) }) // ends with close
	}
	r.client = &http.Client{Transport: &http.Transport{DialContext: r.net.Dial, MaxIdleConnsPerHost: 4096}}
	for i, room := range r.all {
		r.process = append(r.process, &process{router: r, number: i})
		room.other, room.died = r.process[i].buffered, func() { r.died(i) }
		if err := r.process[i].begin(); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

func (r *router) close() {
	r.closing.Store(true)
	r.client.CloseIdleConnections()
	for _, p := range r.process {
		p.stop()
	}
	for _, s := range r.hosts {
		_ = s.Close()
	}
	r.wg.Wait()
}

// died ends the process of a machine that was killed, and begins another when
// the machine is back.
func (r *router) died(i int) {
	p := r.process[i]
	old, _ := p.current()
	r.wg.Go(func() {
		p.kill()
		time.Sleep(r.all[i].machine.down)
		if now, _ := p.current(); now == old {
			_ = p.begin() // it began with the same configuration before
		}
	})
}

// act does what an operator does.
func (r *router) act(a Action) {
	r.each(a, func(i int) {
		p, room := r.process[i], r.all[i]
		switch a.Do {
		case "reload", "configure":
			now, _ := p.current()
			_ = now.Reload() // counted and shown by the router itself
		case "restart":
			room.leave(true)
			p.stop()
			_ = p.begin() // as before
			room.leave(false)
		case "kill":
			room.kill()
		case "drain":
			room.leave(true)
			p.stop()
		case "quarantine":
			now, _ := p.current()
			for _, name := range r.callers(a.Workload) {
				_ = now.Quarantine(name, admin.Quarantine{Share: &a.Share, For: "24h", Who: "operator", Why: "the drill's action"}) // the name has been checked
			}
		}
	})
}

// callers are the router's workloads that a workload of the scenario consists of.
func (r *router) callers(name string) (names []string) {
	for i := range r.Workloads {
		for n := range r.Workloads[i].Callers {
			if r.Workloads[i].Name == name {
				names = append(names, callerName(&r.Workloads[i], n))
			}
		}
	}
	return names
}

// call is one HTTP request of a client. On a gateway with bounds it waits for
// the work before it and costs what its outcome says.
func (r *router) call(ctx context.Context, c call) reply {
	i := r.next()
	if i < 0 {
		return reply{broken: true}
	}
	_, addr := r.process[i].current()
	if r.Gateway == nil {
		return r.send(ctx, addr, c)
	}
	x := r.all[i].enter()
	defer x.exit()
	if x.full {
		return reply{broken: true}
	}
	if !wait(x.queued, ctx.Done()) {
		return reply{late: true, early: true}
	}
	// The body is in the router's own ledger, with a part of what a call takes.
	x.serve(max(0, int64(r.Gateway.PerCall)-gateway.BaseLease))
	out := r.send(ctx, addr, c)
	x.pay(out)
	return out
}

// send makes the request.
func (r *router) send(ctx context.Context, addr string, c call) (out reply) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", bodyOf(c))
	if err != nil {
		return reply{broken: true}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+keyOf(callerName(c.Workload, c.caller)))
	req.Header.Set("User-Agent", c.Agent)
	req.ContentLength = c.bytes
	if c.attempt > 1 && strings.HasPrefix(c.Agent, "OpenAI/") {
		req.Header.Set("X-Stainless-Retry-Count", strconv.FormatUint(c.attempt-1, 10))
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return lost(ctx)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return lost(ctx)
	}
	out = reply{
		status: resp.StatusCode, stop: resp.Header.Get("X-Should-Retry") == "false",
		degraded: resp.Header.Get("Hourthree-Degraded") != "", wrong: bytes.Contains(text, []byte(wrongText)),
	}
	if s, e := strconv.Atoi(resp.Header.Get("Retry-After")); e == nil {
		out.after = time.Duration(s) * time.Second
	}
	out.good = resp.StatusCode == http.StatusOK && whole(c.Stream, text)
	out.early = !out.good && refusedEarly(text)
	return out
}

// refusedEarly knows the refusals that the router makes before it reads a body
// (gateway, stage admit).
func refusedEarly(text []byte) bool {
	return bytes.Contains(text, []byte("has reached its own limit")) || bytes.Contains(text, []byte("was not read"))
}

// lost is a call without an answer.
func lost(ctx context.Context) reply {
	if ctx.Err() != nil {
		return reply{late: true}
	}
	return reply{broken: true}
}

// whole reports that a success is one.
func whole(stream bool, text []byte) bool {
	if stream {
		return bytes.HasSuffix(text, []byte("data: [DONE]\n\n")) && !bytes.Contains(text, []byte(`"error"`))
	}
	var v struct{ Error any }
	return json.Unmarshal(text, &v) == nil && v.Error == nil
}

// weakness is what the router is robbed of.
type weakness struct {
	breaker func(*breaker.Config)
	config  func(*config.Config)
}
