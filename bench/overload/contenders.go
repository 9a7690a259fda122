package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hourthree/hourthree/bench/internal/contend"
	"github.com/hourthree/hourthree/bench/internal/upstream"
)

// The contenders, in the order of the tables.
const (
	direct     = "direct"
	nginxPlain = "nginx"
	nginxLimit = "nginx+limits"
	nginxKeys  = "nginx+keys"
	router     = "hourthree"
	routerKeys = "hourthree+keys"
)

var contenders = []string{router, routerKeys, nginxLimit, nginxKeys, nginxPlain, direct}

// chosen are those of names that are in list, all when it is empty.
func chosen(names []string, list string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return list != "" && !slices.Contains(strings.Split(list, ","), name)
	})
}

// largeContenders meet the large bodies too.
var largeContenders = []string{router, nginxLimit, nginxPlain, direct}

func isNginx(name string) bool { return strings.HasPrefix(name, "nginx") }

// findNginx looks where Debian has it, too.
func findNginx() (string, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if bin, err := exec.LookPath(name); err == nil {
			return bin, nil
		}
	}
	return "", contend.ErrNoNginx
}

// site is where a contender is started and for what capacity.
type site struct {
	core     string // to run on, "" for any
	dir      string // for its files
	router   string // the router's binary
	nginx    string // nginx's, "" when there is none
	upstream string // address
	slots    int
}

func (s site) perSecond() float64 { return float64(s.slots) / service.Seconds() }

// noisyPerSecond is what is left for the noisy workload at capacity.
func (s site) noisyPerSecond() float64 { return offer(noisy, s.perSecond(), 1) }

// start starts a contender; direct is none.
func (s site) start(name string) (*process, error) {
	if name == direct {
		return nil, nil
	}
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	var p *process
	if isNginx(name) {
		p, err = s.startNginx(name, listen)
	} else {
		p, err = s.startRouter(name, listen)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

const routerConf = `listen: %s
admin: {listen: %s}
providers:
  provider: {type: openai-compatible, base_url: "http://%s/v1", api_key: bench-upstream-key}
models:
  %s:
    targets:
      - {provider: provider, limits: {concurrency: %d}}
workloads:
  critical: {keys: [%s], priority: critical}
  interactive: {keys: [%s], priority: interactive}
  noisy: {keys: [%s], priority: interactive%s}
`

func (s site) startRouter(name, listen string) (*process, error) {
	admin, err := freeAddr()
	if err != nil {
		return nil, err
	}
	limits := ""
	if name == routerKeys {
		limits = fmt.Sprintf(", limits: {rpm: %.0f}", 60*s.noisyPerSecond())
	}
	file := filepath.Join(s.dir, name+".yaml")
	text := fmt.Appendf(nil, routerConf, listen, admin, s.upstream, upstream.Model, s.slots, keys[critical], keys[interactive], keys[noisy], limits)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command(s.router, "validate", file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the router refuses its configuration: %w: %s", err, out)
	}
	return launch(listen, command(s.core, s.router, "serve", "-c", file))
}

// nginxConf: one worker, kept connections on both sides, no logs. %s:
// directory, user line, zones, upstream, listen, limits, refusal.
const nginxConf = `daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid %[1]s/pid;
error_log /dev/null crit;
%[2]sevents { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  client_max_body_size 64m;
  keepalive_requests 100000000;
%[3]s  upstream bench {
    server %[4]s max_fails=0;
    keepalive 1024;
    keepalive_requests 100000000;
  }
  server {
    listen %[5]s backlog=4096;
    server_name bench;
    location / {
%[6]s      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_next_upstream off;
      proxy_read_timeout 300s;
    }
%[7]s  }
}
`

// nginxRefusal tells clients when to come back; x-should-retry is the SDKs' own
// and in no nginx configuration we know of.
const nginxRefusal = `    location @refused {
      internal;
      default_type application/json;
      add_header Retry-After 2 always;
      return 429 '{"error":{"message":"Too many requests.","type":"requests","code":"rate_limit_exceeded"}}';
    }
`

// nginxLimits is what an operator who knows the capacity would write: so many
// calls a second, each waiting its turn for at most 0.4 s, and no more at once
// than twice the slots, since reading a body takes time too and the provider
// can queue a few.
// An empty key is not counted, so the second rate is that of one workload.
func (s site) nginxLimits(name string) (zones, limits, refusal string) {
	if name == nginxPlain {
		return "", "", ""
	}
	rate := func(perSecond float64) (string, int) {
		return fmt.Sprintf("%.0fr/m", 60*perSecond), max(1, int(0.4*perSecond))
	}
	all, burst := rate(s.perSecond())
	zones = "  limit_req_zone $server_name zone=rate:1m rate=" + all + ";\n  limit_conn_zone $server_name zone=busy:1m;\n  limit_req_status 429;\n  limit_conn_status 429;\n"
	limits = fmt.Sprintf("      limit_req zone=rate burst=%d;\n      limit_conn busy %d;\n      error_page 429 = @refused;\n", burst, 2*s.slots)
	if name == nginxKeys {
		one, burst := rate(s.noisyPerSecond())
		zones += "  map $http_authorization $noisy { default \"\"; \"Bearer " + keys[noisy] + "\" noisy; }\n  limit_req_zone $noisy zone=noisy:1m rate=" + one + ";\n"
		limits = fmt.Sprintf("      limit_req zone=noisy burst=%d;\n", burst) + limits
	}
	return zones, limits, nginxRefusal
}

func (s site) startNginx(name, listen string) (*process, error) {
	dir, err := os.MkdirTemp(s.dir, "nginx")
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // the worker writes large bodies to dir
	}
	zones, limits, refusal := s.nginxLimits(name)
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, user, zones, s.upstream, listen, limits, refusal), 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command(s.nginx, "-t", "-q", "-p", dir, "-e", "stderr", "-c", conf).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("nginx refuses its configuration: %w: %s", err, out)
	}
	cmd := command(s.core, s.nginx, "-p", dir, "-e", "/dev/null", "-c", conf)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM // the master takes its worker along
	return launch(listen, cmd)
}
