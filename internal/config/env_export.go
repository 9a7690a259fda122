package config

import (
	"net/url"
	"strings"
)

// exportFromEnv makes an export of the usual OpenTelemetry variables. They are
// for a router without a configuration file; in a file they are written as
// references, so that it alone says where things go.
func exportFromEnv(env func(string) (string, bool)) (*OTLP, []string) {
	get := func(name string) string {
		v, _ := env(name)
		return strings.TrimSpace(v)
	}
	endpoint := get("OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	unused := func(why string) (*OTLP, []string) {
		return nil, []string{"Not used: OTEL_EXPORTER_OTLP_ENDPOINT, because " + why + "."}
	}
	if p := get("OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		return unused("OTEL_EXPORTER_OTLP_PROTOCOL is not http/protobuf")
	}
	o := DefaultOTLP(endpoint)
	o.Insecure = true // the scheme says it, as it does to every SDK
	if name := get("OTEL_SERVICE_NAME"); name != "" && clean(name) == name {
		o.ServiceName = name
	}
	var ok bool
	if o.Headers, ok = headersOf(get("OTEL_EXPORTER_OTLP_HEADERS")); !ok {
		return unused("OTEL_EXPORTER_OTLP_HEADERS is not a list of name=value")
	}
	k := &checker{decoder: &decoder{file: "environment"}, c: &Config{Telemetry: Telemetry{OTLP: &o}}}
	k.export()
	if k.problems.Fatal() {
		return unused(strings.TrimPrefix(k.problems[0].Path, "telemetry.otlp.") + " " + k.problems[0].Message)
	}
	return &o, []string{"Traces and metrics go to OTEL_EXPORTER_OTLP_ENDPOINT."}
}

// headersOf reads name=value pairs with a comma between them, percent-encoded.
func headersOf(list string) (map[string]Secret, bool) {
	out := map[string]Secret{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		var s Secret
		if !ok || err != nil || s.parse(value) != nil {
			return nil, false
		}
		out[strings.TrimSpace(name)] = s
	}
	return out, true
}
