package admit

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrOverload says that the ledger has no room for the body. Of a body with a
// Content-Length nothing has been read then.
var ErrOverload = errors.New("no memory left for request bodies")

// ErrTooLarge says that a body exceeds the largest that is taken.
type ErrTooLarge struct {
	Limit int64 // bytes; a body of exactly Limit passes
}

// Error names the limit: it is shown to the caller.
func (e ErrTooLarge) Error() string {
	return fmt.Sprintf("the request body is larger than %d bytes", e.Limit)
}

// chunk is the first grant for a body of unknown length.
const chunk = 64 << 10

// step is the first grant for a longer body of known length: one that is
// announced and does not come holds no more.
const step = 1 << 20

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// ReadBody reads a request body into memory that the lease pays for. It
// reserves contentLength before it reads; of more than 1 MiB it makes sure that
// there is room, reserves 1 MiB, and four times as much whenever that is full.
// With a negative contentLength it reserves 64 KiB, then twice as much. What the
// lease has grown by is the size of the memory returned; after an error it is as
// before. A maxBody of 0 or less sets no bound but the ledger's.
//
// It returns ErrTooLarge, ErrOverload, io.ErrUnexpectedEOF for a body shorter
// than announced, or the reader's own error.
func ReadBody(r io.Reader, contentLength, maxBody int64, lease *Lease) ([]byte, error) {
	switch {
	case maxBody > 0 && contentLength > maxBody:
		return nil, ErrTooLarge{Limit: maxBody}
	case contentLength < 0:
		return readChunked(r, maxBody, lease)
	case contentLength == 0:
		return nil, nil
	case contentLength > step:
		return readLarge(r, contentLength, lease)
	case !lease.Grow(contentLength):
		return nil, ErrOverload
	}
	buf := make([]byte, contentLength)
	if _, err := io.ReadFull(r, buf); err != nil {
		lease.Shrink(contentLength)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return buf, nil
}

// readLarge reads a body of known length in steps.
func readLarge(r io.Reader, length int64, lease *Lease) ([]byte, error) {
	last := int64(step) // the one before the whole
	for after(last, length) < length {
		last = after(last, length)
	}
	if !lease.Fits(last + length) {
		return nil, ErrOverload
	}
	var buf []byte
	for size := int64(step); ; size = after(size, length) {
		old := int64(len(buf))
		if !lease.Grow(size) { // both buffers exist while the first is copied
			lease.Shrink(old)
			return nil, ErrOverload
		}
		next := make([]byte, size)
		copy(next, buf)
		buf = next
		lease.Shrink(old)
		if _, err := io.ReadFull(r, buf[old:]); err != nil {
			lease.Shrink(size)
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if size == length {
			return buf, nil
		}
	}
}

// after is the step behind one of size. The last one at least doubles, so that
// little is copied.
func after(size, length int64) int64 {
	if 8*size > length {
		return length
	}
	return 4 * size
}

// readChunked reads a body of unknown length. Most fit the first block, which
// is shared: they end up in memory of their own size.
func readChunked(r io.Reader, maxBody int64, lease *Lease) ([]byte, error) {
	if !lease.Grow(chunk) {
		return nil, ErrOverload
	}
	block := chunks.Get().(*[chunk]byte)
	defer chunks.Put(block)
	g := growing{lease: lease, buf: block[:0], leased: chunk, max: maxBody}
	body, err := g.readAll(r)
	if err != nil {
		lease.Shrink(g.leased)
		return nil, err
	}
	if len(body) <= chunk && g.leased == chunk {
		body = append(make([]byte, 0, len(body)), body...)
	}
	lease.Shrink(g.leased - int64(cap(body)))
	return body, nil
}

// growing is a buffer whose every growth is leased first.
type growing struct {
	lease  *Lease
	buf    []byte
	leased int64
	max    int64 // of the body, 0 or less for none
}

// maxEmptyReads is how often a reader may return nothing at all in a row.
const maxEmptyReads = 100

func (g *growing) readAll(r io.Reader) ([]byte, error) {
	for empty := 0; ; {
		if len(g.buf) == cap(g.buf) {
			if err := g.grow(); err != nil {
				return nil, err
			}
		}
		n, err := r.Read(g.buf[len(g.buf):cap(g.buf)])
		g.buf = g.buf[:len(g.buf)+n]
		if g.max > 0 && int64(len(g.buf)) > g.max {
			return nil, ErrTooLarge{Limit: g.max}
		}
		if err == io.EOF {
			return g.buf, nil
		}
		if err != nil {
			return nil, err
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty == maxEmptyReads {
			return nil, io.ErrNoProgress
		}
	}
}

// grow doubles the buffer, up to one byte more than the largest body: that
// byte tells a body that is too large from one that just fits. Both buffers
// are leased while both exist.
func (g *growing) grow() error {
	old := int64(cap(g.buf))
	size := 2 * old
	if g.max > 0 {
		size = max(old+1, min(size, g.max+1))
	}
	if !g.lease.Grow(size) {
		return ErrOverload
	}
	g.buf = append(make([]byte, 0, size), g.buf...)
	g.lease.Shrink(old)
	g.leased = size
	return nil
}
