package topology

import (
	"slices"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/layers"
)

func TestRetryClasses(t *testing.T) {
	for _, c := range []struct {
		words string
		want  []layers.Class
	}{
		{"", nil},
		{"5xx", []layers.Class{layers.Connect, layers.Reset, layers.Server}},
		{"gateway-error,connect-failure", []layers.Class{layers.Connect, layers.Server}},
		{"429", []layers.Class{layers.Capacity}},
		{"400-599", []layers.Class{layers.Server, layers.Capacity}},
		{"500-502", []layers.Class{layers.Server}},
		{"RESOURCE-EXHAUSTED", []layers.Class{layers.Capacity}},
		{"retriable-4xx,409,4290,x-y", nil},
	} {
		if got := RetryClasses(strings.Split(c.words, ",")); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.words, got)
		}
	}
}
