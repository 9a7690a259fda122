package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/virtual"
)

var drillArgs = flag.String("drill", "run silence --short --against router,naive", "arguments of hourthree drill, for TestDrillUnderTest")

// TestDrillUnderTest runs hourthree drill inside a test: the way that is left if
// a release of Go refuses virtual time elsewhere.
func TestDrillUnderTest(t *testing.T) {
	virtual.Under(t)
	c := drillCommand()
	c.SetArgs(strings.Fields(*drillArgs))
	c.SetOut(os.Stdout)
	c.SilenceUsage = true
	if err := c.Execute(); err != nil {
		t.Error(err)
	}
}
