package audit

import (
	"os"
	"testing"
)

func TestTmp(t *testing.T) {
	b, _ := os.ReadFile(os.Getenv("TMPY"))
	g := NewGraph(objects(t, string(b)), Options{})
	for _, r := range g.Roles() {
		t.Log(r)
	}
	Tree(os.Stdout, Paths(g), 80)
	Tree(os.Stdout, Paths(g), 44)
}
