package simulate

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
)

const (
	defaultDimensions = 256
	maxDimensions     = 4096
)

// embeddings has a vector for each input.
func (a *answer) embeddings() object {
	list := inputs(a.Input)
	size := a.Dimensions
	if size <= 0 {
		size = defaultDimensions
	}
	size = min(size, maxDimensions)
	out := make([]object, len(list))
	for i, in := range list {
		v := vector(in, size)
		out[i] = object{"object": "embedding", "index": i, "embedding": v}
		if a.EncodingFormat == "base64" {
			out[i]["embedding"] = packed(v)
		}
	}
	return object{"object": "list", "model": a.Model, "data": out, "usage": object{"prompt_tokens": a.prompt, "total_tokens": a.prompt}}
}

// inputs are the things to embed: a text, a list of texts, one list of tokens
// or a list of such lists.
func inputs(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return []json.RawMessage{raw}
	}
	if first := list[0][0]; first != '"' && first != '[' {
		return []json.RawMessage{raw}
	}
	return list
}

// vector is of length one, and the same for the same input.
func vector(text []byte, size int) []float32 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range text {
		h = (h ^ uint64(c)) * 1099511628211
	}
	v, sum := make([]float64, size), 0.0
	for i := range v {
		h = h*6364136223846793005 + 1442695040888963407
		v[i] = float64(h>>11)/(1<<52) - 1
		sum += v[i] * v[i]
	}
	out := make([]float32, size)
	for i := range v {
		out[i] = float32(v[i] / math.Sqrt(sum))
	}
	return out
}

// packed is a vector as base64 of little-endian floats.
func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}
