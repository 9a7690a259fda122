package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// ofExport are the headers that the export sets by itself.
var ofExport = []string{"content-type", "content-encoding", "user-agent", "accept"}

// export checks where traces and metrics go.
func (k *checker) export() {
	o := k.c.Telemetry.OTLP
	if o == nil {
		return
	}
	path := "telemetry.otlp"
	if u, ok := k.collector(path+".endpoint", o.Endpoint); ok && u.Scheme == "http" && !o.Insecure && !loopback(hostPort{host: u.Hostname()}) {
		k.error(path+".endpoint", "would be sent to without encryption", "use https, or set insecure: true")
	}
	for header, v := range o.Headers {
		name := strings.ToLower(header)
		if !headerName.MatchString(header) || slices.Contains(notSettable, name) || slices.Contains(ofExport, name) {
			k.error(path+".headers."+header, "is not a header that can be set", "")
		} else if strings.ContainsFunc(v.value, func(r rune) bool { return r > '~' }) {
			k.error(path+".headers."+header, "has characters that a header cannot carry", "")
		}
	}
	if t := o.Timeout.Duration(); t < 100*time.Millisecond || t > time.Minute {
		k.error(path+".timeout", "must be 100ms to 1m", "")
	}
	if i := o.MetricsInterval.Duration(); i != 0 && i < time.Second {
		k.error(path+".metrics_interval", "must be 1s or more, or 0", "")
	}
}

// collector checks the address of a collector.
func (k *checker) collector(path, address string) (*url.URL, bool) {
	if address == "" {
		return nil, false // reported
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		k.error(path, "must be an http or https address with a host", "port 4317 is gRPC's, which is not spoken; OTLP over HTTP has 4318")
		return nil, false
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		k.error(path, "must have no user, query or fragment", "a credential belongs in headers")
	}
	if p := strings.TrimRight(u.Path, "/"); strings.HasSuffix(p, "/v1/traces") || strings.HasSuffix(p, "/v1/metrics") {
		k.error(path, "is the address of one signal", "leave out the path from /v1 on")
	}
	if u.Port() == "4317" {
		k.warning(path, "has the port of OTLP over gRPC, which is not spoken", "OTLP over HTTP has 4318")
	}
	return u, true
}
