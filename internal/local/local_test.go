package local

import "testing"

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8081": true, "127.9.9.9:1": true, "localhost": true, "localhost:80": true, "[::1]:80": true, "[::1]": true, "::1": true,
		"": false, ":8080": false, "0.0.0.0:80": false, "example.com": false, "127.0.0.1.example.com": false, "localhost.example.com:80": false, "192.0.2.1": false, "[::]:80": false,
	} {
		if got := Host(host); got != want {
			t.Errorf("Host(%q) = %v", host, got)
		}
	}
}
