package topology

import (
	"context"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/manifest"
)

// objects reads manifests for a test. They must be without fault.
func objects(t testing.TB, text string) []*manifest.Object {
	t.Helper()
	set, err := manifest.Read(context.Background(), manifest.Options{Paths: []string{"-"}, Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Problems {
		t.Errorf("%+v", p)
	}
	return set.Objects
}
