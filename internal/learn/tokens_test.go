package learn

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTokensBeforeAnythingIsKnown(t *testing.T) {
	var k Tokens
	if k.Input(3600) != 1000 || k.Input(0) != 0 || k.Input(-1) != 0 || k.Input(1) != 1 {
		t.Error("input")
	}
	if k.Output(0) != DefaultOutput || k.Output(5) != 5 || k.Output(100_000) != DefaultOutput {
		t.Error("output")
	}
}

// What is learned comes near to what is true, whatever it was before.
func TestTokensLearn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k Tokens
		for range rapid.IntRange(0, 50).Draw(t, "before") {
			k.Learn(rapid.Int64().Draw(t, "bytes"), rapid.Int64().Draw(t, "input"), rapid.Int64().Draw(t, "output"))
		}
		bytes := rapid.Int64Range(500, 1_000_000).Draw(t, "bytes")
		input := rapid.Int64Range(bytes/100, bytes).Draw(t, "input")
		var lengths []int64
		for range 2 * outputs {
			n := rapid.Int64Range(1, 4000).Draw(t, "output")
			lengths = append(lengths, n)
			k.Learn(bytes, input, n)
		}
		if got := k.Input(bytes); math.Abs(float64(got-input)) > 1+float64(input)/100 {
			t.Fatalf("%d bytes are %d tokens, want %d", bytes, got, input)
		}
		last := slices.Clone(lengths[len(lengths)-outputs/2:])
		slices.Sort(last)
		p80, p98 := last[len(last)*80/100], last[len(last)*98/100]
		if got := k.Output(0); got < p80 || float64(got) > 1.2*float64(p98)+1 {
			t.Fatalf("nine in ten stay below %d, want %d to %d", got, p80, p98)
		}
	})
}

// Nothing that a provider reports makes an estimate that is not one.
func TestTokensStaySane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k Tokens
		for range 100 {
			k.Learn(rapid.Int64().Draw(t, "bytes"), rapid.Int64().Draw(t, "input"), rapid.Int64().Draw(t, "output"))
			limit := rapid.Int64Range(0, 100).Draw(t, "limit")
			if n := k.Output(limit); n < 0 || limit > 0 && n > limit {
				t.Fatalf("%d of %d", n, limit)
			}
			if n := k.Input(1_000_000); n < 1 || n > 3_000_000 {
				t.Fatalf("%d", n)
			}
		}
	})
}
