package admit

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// counted counts what is read.
type counted struct {
	r io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func lease(t testing.TB, limit int64) (*Ledger, *Lease) {
	t.Helper()
	l := NewLedger(limit)
	x, ok := l.Reserve(0)
	if !ok {
		t.Fatal("an empty lease was refused")
	}
	return l, x
}

func TestReadBodyLimit(t *testing.T) {
	const limit = 200_000
	for _, size := range []int{limit - 1, limit, limit + 1} {
		for _, announced := range []bool{true, false} {
			_, x := lease(t, 1<<20)
			length := int64(-1)
			if announced {
				length = int64(size)
			}
			in := &counted{r: bytes.NewReader(bytes.Repeat([]byte("x"), size))}
			body, err := ReadBody(in, length, limit, x)
			var large ErrTooLarge
			switch {
			case size <= limit && (err != nil || len(body) != size):
				t.Errorf("size %d, announced %v: %d bytes, %v", size, announced, len(body), err)
			case size > limit && (!errors.As(err, &large) || large.Limit != limit):
				t.Errorf("size %d, announced %v: error %v", size, announced, err)
			case size > limit && announced && in.n != 0:
				t.Errorf("read %d bytes of a body announced as too large", in.n)
			case size > limit && x.Bytes() != 0:
				t.Errorf("an error left %d bytes leased", x.Bytes())
			}
		}
	}
}

func TestReadBodyOverloadBeforeReading(t *testing.T) {
	for _, length := range []int64{5000, -1} {
		l, x := lease(t, 4999)
		in := &counted{r: bytes.NewReader(make([]byte, 5000))}
		if _, err := ReadBody(in, length, 0, x); !errors.Is(err, ErrOverload) {
			t.Errorf("length %d: %v, want overload", length, err)
		}
		if in.n != 0 || l.Reserved() != 0 {
			t.Errorf("length %d: read %d bytes, %d reserved", length, in.n, l.Reserved())
		}
	}
}

// A large body that is announced and does not come holds one step; one that has
// no room is refused before it is read.
func TestReadBodyInSteps(t *testing.T) {
	l, x := lease(t, 16<<20)
	r, w := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := ReadBody(r, 10<<20, 0, x)
		done <- err
	}()
	if _, err := w.Write(make([]byte, 1000)); err != nil { // the reader is in its first step
		t.Fatal(err)
	}
	if got := l.Reserved(); got != step {
		t.Errorf("%d bytes reserved for a body that does not come", got)
	}
	w.Close()
	if err := <-done; err != io.ErrUnexpectedEOF || l.Reserved() != 0 {
		t.Errorf("%v, %d bytes reserved", err, l.Reserved())
	}
	in := &counted{r: bytes.NewReader(make([]byte, 16<<20))}
	if _, err := ReadBody(in, 16<<20, 0, x); !errors.Is(err, ErrOverload) || in.n != 0 || l.Reserved() != 0 {
		t.Errorf("%v, read %d, %d bytes reserved", err, in.n, l.Reserved())
	}
}

func TestReadBodyOverloadWhileGrowing(t *testing.T) {
	l, x := lease(t, 200_000) // 64 KiB, then 128 KiB beside it, then too much
	in := bytes.NewReader(make([]byte, 150_000))
	if _, err := ReadBody(in, -1, 0, x); !errors.Is(err, ErrOverload) {
		t.Fatalf("got %v, want overload", err)
	}
	if l.Reserved() != 0 {
		t.Fatalf("%d bytes reserved after the error", l.Reserved())
	}
}

func TestReadBodyErrors(t *testing.T) {
	broken := errors.New("connection reset")
	for _, tc := range []struct {
		name   string
		r      io.Reader
		length int64
		want   error
	}{
		{"short", bytes.NewReader(make([]byte, 10)), 20, io.ErrUnexpectedEOF},
		{"nothing", bytes.NewReader(nil), 20, io.ErrUnexpectedEOF},
		{"broken", iotest.ErrReader(broken), 20, broken},
		{"broken, chunked", iotest.ErrReader(broken), -1, broken},
		{"never anything", silent{}, -1, io.ErrNoProgress},
	} {
		l, x := lease(t, 1<<20)
		if _, err := ReadBody(tc.r, tc.length, 0, x); err != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if l.Reserved() != 0 {
			t.Errorf("%s: %d bytes reserved after the error", tc.name, l.Reserved())
		}
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

// Every body comes back as sent, and the lease pays for exactly the memory it
// is in. It fails when readChunked returns the shared block itself.
func TestReadBodyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 1000), rapid.IntRange(chunk-2, chunk+2), rapid.IntRange(0, 300_000), rapid.IntRange(step-1, 5*step)).Draw(t, "size")
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * 7)
		}
		var in io.Reader = bytes.NewReader(want)
		switch rapid.IntRange(0, 2).Draw(t, "reader") {
		case 1:
			in = iotest.DataErrReader(in)
		case 2:
			in = iotest.HalfReader(in)
		}
		length := int64(-1)
		if rapid.Bool().Draw(t, "announced") {
			length = int64(size)
		}
		l := NewLedger(64 << 20)
		x, _ := l.Reserve(0)
		body, err := ReadBody(in, length, rapid.SampledFrom([]int64{0, int64(max(1, size)), 1 << 30}).Draw(t, "max"), x)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := NewLedger(1 << 20).Reserve(0)
		if _, err := ReadBody(bytes.NewReader(make([]byte, chunk)), -1, 0, other); err != nil { // reuses the shared block
			t.Fatal(err)
		}
		if !bytes.Equal(body, want) {
			t.Fatal("the body changed")
		}
		if x.Bytes() != int64(cap(body)) {
			t.Fatalf("leased %d for %d bytes", x.Bytes(), cap(body))
		}
		if length < 0 && cap(body) > max(2*size+2, chunk) || length >= 0 && cap(body) != size {
			t.Fatalf("%d bytes held for a body of %d", cap(body), size)
		}
	})
}

func benchmarkBody(b *testing.B, size int, length int64) {
	l := NewLedger(1 << 30)
	data := make([]byte, size)
	r := bytes.NewReader(data)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		r.Reset(data)
		x, _ := l.Reserve(0)
		if _, err := ReadBody(r, length, 1<<30, x); err != nil {
			b.Fatal(err)
		}
		x.Release()
	}
}

func BenchmarkReadBody2KB(b *testing.B)        { benchmarkBody(b, 2<<10, 2<<10) }
func BenchmarkReadBody2KBChunked(b *testing.B) { benchmarkBody(b, 2<<10, -1) }
func BenchmarkReadBody8MB(b *testing.B)        { benchmarkBody(b, 8<<20, 8<<20) }
func BenchmarkReadBody1MBChunked(b *testing.B) { benchmarkBody(b, 1<<20, -1) }
