package contend

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrNoNginx says how to get the contender that is missing.
var ErrNoNginx = errors.New("nginx is not installed (apt-get install nginx-light); going on without it")

// Failover is how nginx is to treat a primary and a backup.
type Failover struct {
	ReadTimeout time.Duration // whole seconds
	FailTimeout time.Duration // whole seconds
}

// nginxConf: one worker, kept connections on both sides, no logs, nothing
// buffered on the way to the client. %s: directory, user line, servers,
// listen, policy.
const nginxConf = `daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid %[1]s/pid;
error_log /dev/null crit;
%[2]sevents { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  client_max_body_size 64m;
  keepalive_requests 100000000;
  keepalive_timeout 120s;
  upstream bench {
%[3]s    keepalive 1024;
    keepalive_requests 100000000;
  }
  server {
    listen %[4]s backlog=4096;
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
%[5]s    }
  }
}
`

// Nginx starts nginx before the upstreams: the first is the primary, others
// are backups. Its files go to a new directory in dir. f is nil for a proxy
// that never fails over.
func Nginx(s Spec, dir string, f *Failover, addrs ...string) (*Process, error) {
	bin, err := exec.LookPath("nginx")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, ErrNoNginx
		}
	}
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	if dir, err = os.MkdirTemp(dir, "nginx"); err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // the worker writes large bodies to dir
	}
	conf := filepath.Join(dir, "nginx.conf")
	servers, policy := nginxPolicy(f, addrs)
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, user, servers, listen, policy), 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command(bin, "-t", "-q", "-p", dir, "-e", "stderr", "-c", conf).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("nginx refuses its configuration: %w: %s", err, out)
	}
	cmd := s.command(bin, "-p", dir, "-e", "/dev/null", "-c", conf)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM // the master takes its worker along
	return launch("nginx", listen, cmd, func() error { return dial(listen) })
}

func nginxPolicy(f *Failover, addrs []string) (servers, policy string) {
	if f == nil {
		return "    server " + addrs[0] + " max_fails=0;\n", "      proxy_read_timeout 300s;\n"
	}
	var b strings.Builder
	for i, a := range addrs {
		fmt.Fprintf(&b, "    server %s max_fails=5 fail_timeout=%ds", a, int(f.FailTimeout.Seconds()))
		if i > 0 {
			b.WriteString(" backup")
		}
		b.WriteString(";\n")
	}
	policy = fmt.Sprintf("      proxy_connect_timeout 3s;\n      proxy_read_timeout %ds;\n", int(f.ReadTimeout.Seconds())) +
		"      proxy_next_upstream error timeout http_500 http_502 http_503 http_504 http_429 non_idempotent;\n"
	return b.String(), policy
}
