package provider

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
)

// decode makes an answer readable that came compressed although identity was
// asked for. Nothing is read until the body is.
func decode(resp *http.Response) {
	var open func(*bufio.Reader) (io.Reader, error)
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "":
		return
	case "identity":
		resp.Header.Del("Content-Encoding")
		return
	case "gzip", "x-gzip":
		open = func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case "deflate":
		open = inflate
	default:
		return
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	resp.Body = &decoded{src: resp.Body, open: open}
}

// inflate reads deflate in both forms in use: with zlib's header, as the
// standard says, and bare.
func inflate(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(2)
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if head[0]&0x0f == 8 && (uint16(head[0])<<8|uint16(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// decoded is a body that is decoded as it is read. It belongs to its reader.
type decoded struct {
	src  io.ReadCloser
	open func(*bufio.Reader) (io.Reader, error)
	r    io.Reader
	err  error
}

func (d *decoded) Read(p []byte) (int, error) {
	if d.r == nil && d.err == nil {
		if d.r, d.err = d.open(bufio.NewReader(d.src)); d.err == io.EOF {
			d.err = io.ErrUnexpectedEOF // a coding without even its header
		}
	}
	if d.err != nil {
		return 0, d.err
	}
	return d.r.Read(p)
}

func (d *decoded) Close() error { return d.src.Close() }
