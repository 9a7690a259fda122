package provider

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/testnet"
)

// packed compresses pieces, flushing after each, and returns what each added.
func packed(t *testing.T, coding string, pieces ...string) []string {
	t.Helper()
	var b bytes.Buffer
	var w interface {
		io.WriteCloser
		Flush() error
	}
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	default:
		w, _ = flate.NewWriter(&b, flate.BestSpeed)
	}
	var out []string
	for i, p := range pieces {
		_, _ = io.WriteString(w, p)
		_ = w.Flush()
		if i == len(pieces)-1 {
			_ = w.Close()
		}
		out = append(out, b.String())
		b.Reset()
	}
	return out
}

// TestDecode: answers in codings that were not asked for are read as what
// they mean, and their headers say so; streams as they come.
func TestDecode(t *testing.T) {
	for _, c := range []struct{ coding, header string }{{"gzip", "gzip"}, {"x-gzip", "X-GZIP"}, {"zlib", "deflate"}, {"flate", "deflate"}} {
		t.Run(c.coding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				whole := packed(t, c.coding, `{"a":1}`)[0]
				parts := packed(t, c.coding, "data: 1\n\n", "data: 2\n\n")
				b := newBench(t,
					testnet.Try(1, testnet.Answer(200, whole, "Content-Encoding", c.header)),
					testnet.Try(2, testnet.Head(200, "Content-Encoding", c.header), testnet.Raw(parts[0]), testnet.Wait(time.Hour), testnet.Raw(parts[1])),
					testnet.Try(3, testnet.Head(200, "Content-Encoding", c.header), testnet.Raw(parts[0]), testnet.Fin()),
					testnet.Try(4, testnet.Answer(200, "", "Content-Encoding", c.header)),
				)
				if _, _, body, err := b.call(t.Context(), calls()["post"]()); err != nil || body != `{"a":1}` {
					t.Fatalf("%q %v", body, err)
				}
				out, _ := b.Request(t.Context(), calls()["post"]())
				resp, err := b.RoundTrip(ticket(t), out)
				if err != nil || resp.ContentLength != -1 || resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Content-Length") != "" {
					t.Fatal(resp, err)
				}
				start, got := time.Now(), make([]byte, 100)
				n, err := io.ReadAtLeast(resp.Body, got, 9)
				if err != nil || string(got[:n]) != "data: 1\n\n" || time.Since(start) != 0 {
					t.Fatalf("%q %v after %v", got[:n], err, time.Since(start))
				}
				rest, err := io.ReadAll(resp.Body)
				if err != nil || string(rest) != "data: 2\n\n" {
					t.Fatalf("%q %v", rest, err)
				}
				resp.Body.Close()
				for range 2 {
					if _, _, body, err := b.call(t.Context(), calls()["post"]()); !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Fatalf("a cut coding reads as whole: %q %v", body, err)
					}
				}
			})
		})
	}
}

// TestUndecoded: a coding nobody here reads passes as it is.
func TestUndecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testnet.Try(1, testnet.Answer(200, "\x8b\x02\x80hi\x03", "Content-Encoding", "br")), testnet.Always(testnet.Answer(200, "hi", "Content-Encoding", "identity")))
		for _, want := range []struct{ coding, body string }{{"br", "\x8b\x02\x80hi\x03"}, {"", "hi"}} {
			out, _ := b.Request(t.Context(), calls()["post"]())
			resp, err := b.RoundTrip(ticket(t), out)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(body) != want.body || resp.Header.Get("Content-Encoding") != want.coding {
				t.Fatal(resp.Header, body, err)
			}
		}
	})
}
