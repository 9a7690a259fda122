package upstream

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"strconv"
	"sync"
)

// headBytes is how much of a body is looked at; the rest is read and dropped.
const headBytes = 64 << 10

type kind int

const (
	other kind = iota
	chat
	stream
	embeddings
	models
)

var errHead = errors.New("malformed request head")

// readHead reads the request line and the headers this server cares about.
func (x *exchange) readHead() error {
	line, err := x.line()
	if err != nil {
		return err
	}
	_, rest, ok := bytes.Cut(line, []byte(" "))
	path, _, ok2 := bytes.Cut(rest, []byte(" "))
	if !ok || !ok2 || len(path) > len(x.keep) {
		return errHead
	}
	x.path = x.keep[:copy(x.keep[:], path)]
	x.size, x.close = 0, false
	for {
		if line, err = x.line(); err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if x.size, err = strconv.ParseInt(string(value), 10, 64); err != nil || x.size < 0 {
				return errHead
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			x.size = -1
		case bytes.EqualFold(name, []byte("Connection")):
			x.close = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte("Expect")):
			x.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
		}
	}
}

func (x *exchange) line() ([]byte, error) {
	line, err := x.in.ReadSlice('\n')
	return bytes.TrimRight(line, "\r\n"), err
}

var sinks = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// readBody reads the whole body and keeps its beginning.
func (x *exchange) readBody() error {
	from := io.Reader(x.in)
	left := x.size
	if left < 0 {
		from, left = httputil.NewChunkedReader(x.in), 1<<40
	}
	head := int(min(left, headBytes))
	if cap(x.body) < head {
		x.body = make([]byte, head)
	}
	n, err := io.ReadFull(from, x.body[:head])
	x.body = x.body[:n]
	if left > int64(n) && err == nil {
		sink := sinks.Get().(*[]byte)
		_, err = io.CopyBuffer(onlyWriter{io.Discard}, io.LimitReader(from, left-int64(n)), *sink)
		sinks.Put(sink)
	}
	if x.size >= 0 {
		return err
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	_, err = x.line() // the empty line after the last chunk
	return err
}

// onlyWriter hides io.Discard's ReadFrom, which would read in small pieces.
type onlyWriter struct{ io.Writer }

func (x *exchange) kind() kind {
	switch {
	case bytes.HasSuffix(x.path, []byte("/chat/completions")):
		if bytes.Contains(x.body[:min(len(x.body), 4096)], []byte(`"stream":true`)) {
			return stream
		}
		return chat
	case bytes.HasSuffix(x.path, []byte("/embeddings")):
		return embeddings
	case bytes.HasSuffix(x.path, []byte("/models")):
		return models
	}
	return other
}

// wantsUsage reports whether the caller asked for the chunk with usage.
func (x *exchange) wantsUsage() bool { return bytes.Contains(x.body, []byte(`"include_usage":true`)) }
