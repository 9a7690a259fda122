package app

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// written makes a request out of header lines that a client library would not
// write, and reads the answer.
func (r *rig) written(path, body string, lines ...string) answer {
	r.t.Helper()
	c := r.dialRaw()
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n\r\n%s", path, strings.Join(lines, "\r\n"), body); err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	var b strings.Builder
	_, err = bufio.NewReader(resp.Body).WriteTo(&b)
	return answer{status: resp.StatusCode, header: resp.Header, body: b.String(), err: err}
}

// Breaks when the last of two keys counts, when net/http's check of lengths is
// bypassed, or when both of two content types go up.
func TestHeadersSentTwice(t *testing.T) {
	const auth, wrong, kind = "Authorization: Bearer " + callerKey, "Authorization: Bearer wrong", "Content-Type: application/json"
	body := chatAsk(false)
	length := fmt.Sprintf("Content-Length: %d", len(body))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for name, tc := range map[string]struct {
		lines  []string
		body   string
		status int
	}{
		"right key, wrong key":    {[]string{auth, wrong, kind, length}, body, 200},
		"wrong key, right key":    {[]string{wrong, auth, kind, length}, body, 401},
		"empty key, right key":    {[]string{"Authorization:", auth, kind, length}, body, 401},
		"wrong key, other header": {[]string{wrong, "X-Api-Key: " + callerKey, kind, length}, body, 401},
		"two lengths":             {[]string{auth, kind, length, "Content-Length: 5"}, body, 400},
		"one length twice":        {[]string{auth, kind, length, length}, body, 200},
		"list of lengths":         {[]string{auth, kind, length + ", 5"}, body, 400},
		"signed length":           {[]string{auth, kind, strings.Replace(length, ": ", ": +", 1)}, body, 400},
		"chunked and a length":    {[]string{auth, kind, "Content-Length: 3", "Transfer-Encoding: chunked"}, chunked, 200},
		"two codings":             {[]string{auth, kind, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"}, chunked, 501},
		"unknown coding":          {[]string{auth, kind, "Transfer-Encoding: xchunked"}, chunked, 501},
		"two types":               {[]string{auth, kind, "Content-Type: text/plain", length}, body, 200},
		"space before the colon":  {[]string{auth, kind, length, "X-Odd : 1"}, body, 400},
		"folded line":             {[]string{auth, kind, length, "X-Odd: 1\r\n Api-Key: 2"}, body, 200},
		"connection names a key":  {[]string{auth, kind, length, "Connection: authorization, content-type"}, body, 200},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", answers("from one"))
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.written("/v1/chat/completions", tc.body, tc.lines...)
				if a.status != tc.status {
					t.Errorf("status %d, error %v, want %d: %.200q", a.status, a.err, tc.status, a.body)
				}
				if tc.status != 200 {
					r.counts(map[*fake]int{u1: 0})
					return
				}
				r.counts(map[*fake]int{u1: 1})
				s := u1.request(0)
				if want := strings.Replace(body, `"m"`, `"real"`, 1); s.body != want || s.header.Get("Content-Length") != fmt.Sprint(len(want)) {
					t.Errorf("went up as %q with %v", s.body, s.header)
				}
				if h := s.header; len(h["Authorization"]) != 1 || len(h["Content-Type"]) != 1 || h.Get("Content-Type") != "application/json" || h["Transfer-Encoding"] != nil || h["X-Odd"] != nil {
					t.Errorf("went up with %v", h)
				}
			})
		})
	}
}

// Breaks when the path that is judged by its first content type goes up with
// the second one as well.
func TestTwoTypesOfAPassedBody(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	run(t, setup{upstreams: []*fake{u1}, more: "passthrough: {/v1/files: u1}\n"}, func(r *rig) {
		body := `{"model":"real"}`
		a := r.written("/v1/files", body, "Authorization: Bearer "+callerKey, "Content-Type: text/plain", "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)))
		if a.status != 200 {
			t.Errorf("status %d: %s", a.status, a.body)
		}
		if got := u1.request(0).header["Content-Type"]; !slices.Equal(got, []string{"text/plain"}) {
			t.Errorf("went up as %q", got)
		}
	})
}

// Breaks when hop-by-hop names, those that Connection lists, or a second
// content type pass, and when an answer of two lengths counts as whole.
func TestHeadersAnsweredTwice(t *testing.T) {
	body := chatBody("from one")
	const ok, kind = "HTTP/1.1 200 OK\r\n", "Content-Type: application/json\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(body), body)
	for name, tc := range map[string]struct {
		wire string
		bad  bool // an outage: the next target answers
	}{
		"two types":            {ok + kind + "Content-Type: text/html\r\n" + length + "\r\n" + body, false},
		"one length twice":     {ok + kind + length + length + "\r\n" + body, false},
		"two lengths":          {ok + kind + length + "Content-Length: 5\r\n\r\n" + body, true},
		"short length":         {ok + kind + "Content-Length: 9\r\n\r\n" + body, true},
		"long length":          {ok + kind + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)+1) + body, true},
		"chunked and a length": {ok + kind + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + "\r\n", false},
		"two codings":          {ok + kind + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + "\r\n", true},
		"hop by hop": {ok + kind + length + "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nProxy-Connection: close\r\n" +
			"Upgrade: h2c\r\nTe: trailers\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nWww-Authenticate: Bearer\r\nHourthree-Class: outage\r\nX-Should-Retry: true\r\nRetry-After: 1\r\nRetry-After: 2\r\n\r\n" + body, false},
		"trailer":              {ok + kind + "Trailer: X-Late\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + "X-Late: 1\r\n\r\n", false},
		"early hints":          {"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok + kind + length + "\r\n" + body, false},
		"switching protocols":  {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", true},
		"a line with no colon": {ok + kind + length + "nonsense\r\n\r\n" + body, true},
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", script{wireText(tc.wire)}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				a := r.do(ask{})
				if tc.bad {
					r.good(a, "from two")
					r.counts(map[*fake]int{u1: 1, u2: 1})
					return
				}
				if a.err != nil || a.status != 200 || a.body != body {
					t.Errorf("status %d, error %v, body %.200q", a.status, a.err, a.body)
				}
				r.counts(map[*fake]int{u1: 1, u2: 0})
				for key, values := range a.header {
					if len(values) != 1 {
						t.Errorf("%s is there %d times: %q", key, len(values), values)
					}
					switch key {
					case "Content-Type", "Content-Length", "Date", "X-Request-Id", "Hourthree-Target", "Hourthree-Attempts":
					default:
						t.Errorf("%s: %q reached the client", key, values)
					}
				}
				if got := a.header.Get("Content-Type"); got != "application/json" {
					t.Errorf("content type %q", got)
				}
				if got := a.header.Get("Content-Length"); got != fmt.Sprint(len(body)) {
					t.Errorf("content length %q, want %d", got, len(body))
				}
			})
		})
	}
}
