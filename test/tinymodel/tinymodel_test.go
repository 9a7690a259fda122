package tinymodel

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestBytes(t *testing.T) {
	b := Bytes()
	if !bytes.Equal(b, Bytes()) {
		t.Error("the model differs from one time to the next")
	}
	if len(b) < 400<<10 || len(b) > 600<<10 {
		t.Errorf("the model has %d bytes, want about half a megabyte", len(b))
	}
	if string(b[:4]) != "GGUF" || binary.LittleEndian.Uint32(b[4:]) != 3 {
		t.Errorf("head is %q", b[:8])
	}
	if n := binary.LittleEndian.Uint64(b[8:]); n != 3+9*layers {
		t.Errorf("%d tensors, want %d", n, 3+9*layers)
	}
}
